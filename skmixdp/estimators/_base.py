"""The base class of all estimators: parameter checks and ``fit``."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from inspect import signature
from os import PathLike
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from .._utils.validation import (
    COUNT,
    FLAG,
    POSITIVE,
    Allowed,
    Kind,
    check,
    check_params,
    suggestion,
    whole_from,
)
from ..algorithms import Algorithm
from ..privacy import LEDGER
from ..privacy.accounting.budgets import Budget
from ..privacy.noise import check_noise
from ..privacy.notebook import CaptionMixin, GuaranteeBoxMixin
from ._callbacks import PrivateCallbackMixin
from ._checks import check_device
from ._exports import save
from ._fit import EstimatorProcedure, FitData, fit_many

#: Parameters of other libraries, and our equivalents.
_EQUIVALENTS = {
    "C": "l2",
    "accountant": "ledger",
    "alpha": "l2",
    "bounds_y": "target_scale",
    "data_norm": "row_norm",
    "epochs": "n_steps",
    "eps": "epsilon",
    "eta0": "learning_rate",
    "lr": "learning_rate",
    "max_iter": "n_steps",
    "normalize": "row_norm",
    "sigma": "noise_multiplier",
    "warm_start": "init",
}


class PrivateEstimator(PrivateCallbackMixin, CaptionMixin, GuaranteeBoxMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all estimators: subclasses define the queries of a fit, and this class runs it.

    A fit runs on a copy of the estimator (see :mod:`skmixdp.estimators._fit`). A fit that fails
    therefore leaves the estimator and the results of its earlier fits unchanged.
    """

    #: The algorithm for each name that ``algorithm`` accepts.
    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]]

    #: The objects that it accepts besides, and what to do with others.
    _objects: ClassVar[Kind] = Kind(
        "an object from skmixdp.algorithms", lambda value: isinstance(value, Algorithm)
    )
    _remedy: ClassVar[str] = ""

    #: The allowed values of each parameter. Checks that involve several parameters are made elsewhere.
    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "learning_rate": (POSITIVE, "auto"),
        "batch_size": (COUNT, None),
        "verbose": (FLAG, whole_from(0)),
        "ledger": (None, LEDGER),
    }

    #: The released head that a fit continues from.
    _released_start: Any = None

    #: The names that ``init`` accepts.
    _starts: ClassVar[tuple[str, ...]] = ("public", "zeros")

    #: The fitted attributes that :meth:`save` writes, and no others.
    _saved: ClassVar[tuple[str, ...]] = ("n_iter_", "learning_rate_", "privacy_")

    #: Searches look for this attribute to recognise estimators that can be fitted together.
    _fit_many = staticmethod(fit_many)

    def __new__(cls, *args: object, **parameters: object) -> Self:  # noqa: ARG004
        """Refuse unknown parameters, and name our equivalents of those of other libraries."""
        known = signature(cls).parameters if parameters else {}  # a copy, as each fit makes, is given none
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
        for name in () if takes_any else parameters:
            if name not in known:
                equivalent, close = _EQUIVALENTS.get(name), suggestion(name, known)
                hint = f"{close}?" if close else "leave it out."
                if equivalent in known:
                    hint = f"{equivalent} is what comes closest."
                raise TypeError(f"{cls.__name__} has no parameter {name!r}; {hint}")
        made: Self = super().__new__(cls)
        return made

    #: Known leaks of the present fit, and of scikit-learn around it.
    _leaks: tuple[str, ...]

    # These are routed to fit by default, without set_fit_request.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True, "groups": True}

    def set_params(self, **params: object) -> "PrivateEstimator":
        """Set parameters; ``algorithm__<name>`` sets a parameter of the algorithm object.

        Raises
        ------
        ValueError
            For an unknown parameter. Also for ``algorithm__<name>`` if ``algorithm`` is a string,
            which has no parameters.
        """
        nested = [name for name in params if name.startswith("algorithm__")]
        algorithm = params.get("algorithm", self.algorithm)
        if nested and isinstance(algorithm, str):
            named, name = self._algorithms.get(algorithm), nested[0].split("__")[1]
            makers = ([] if named is None else [named]) + list(self._algorithms.values())
            objects = [make() for make in makers]  # the named one first, which may lack the parameter
            fitting = next((made for made in objects if name in made.get_params(deep=False)), objects[0])
            kind = type(fitting).__name__
            raise ValueError(
                f"{nested[0]} needs an algorithm object, but algorithm={algorithm!r} is a name; "
                f"pass algorithm=skmixdp.algorithms.{kind}()."
            )
        super().set_params(**params)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file that :func:`skmixdp.load` reads, without pickle.

        The file is in the safetensors format. It holds the parameters, the fitted attributes and the privacy
        report. An existing file is replaced.

        Parameters
        ----------
        path : str or path
            The file; the usual ending is ``.safetensors``.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If a parameter is a function or an object of your own class. Also for a subclass of your own.
        OSError
            If the file cannot be written.

        Notes
        -----
        *Guarantee*: the file holds what is public or was released, and nothing else of the private rows. The
        ledger is kept as the absolute path of its file.
        """
        save(self, path)

    # -- fitting ---------------------------------------------------------------------------

    @abstractmethod
    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        """Check the rows, and return all that the fit asks; this object will hold the results."""

    def _check_parameters(self) -> Budget:
        """Check every parameter that needs no data."""
        budget = Budget(
            self.epsilon, self.delta, self.n_steps, self.noise_multiplier, self.neighboring, self.noise
        )
        self._chosen_algorithm()
        check_params(self, self._allowed)
        if self.batch_size is not None and self.noise == "discrete":
            raise ValueError(
                f"batch_size={self.batch_size} cannot be accounted for with noise='discrete'; pass None for "
                "the full batch, or noise='float'."
            )
        if isinstance(self.init, str):
            check("init", self.init, *self._starts)
        check_device(self.device)
        check_noise(self.noise, self.random_state)
        return budget

    def _chosen_algorithm(self) -> Algorithm:
        """The algorithm object, created with default settings if ``algorithm`` is a name."""
        algorithm = self.algorithm
        if isinstance(algorithm, type) and issubclass(algorithm, Algorithm):
            raise ValueError(
                f"algorithm={algorithm.__name__} is a class; pass an object, such as {algorithm.__name__}()."
            )
        check("algorithm", algorithm, *self._algorithms, self._objects, remedy=self._remedy)
        chosen: Algorithm = self._algorithms[algorithm]() if isinstance(algorithm, str) else algorithm
        return chosen
