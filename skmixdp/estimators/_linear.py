"""What the linear estimators share: from validated arrays to a trained head and its report."""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._engine import Budget, Options, Plan, Run, make_plan
from .._linear import Loss
from .._rowmap import RowMap
from .._rows import Table
from ..algorithms import BY_NAME, Algorithm
from ..components import FullBatch, PoissonBatch
from ..components.protocols import PublicInfo, Sampling
from ..leaks._enclosing import warn_of_leaks
from ..privacy import Charge, NoiseSource, PrivacyReport, accountant_name
from ..public import PublicData
from ._charging import check_ledger, paid
from ._checks import (
    CheckTarget,
    check_algorithm,
    check_auto,
    check_batch_size,
    check_budget,
    check_choice,
    check_verbose,
    collect_public,
    refuse_unsupported,
    warn_of_delta,
    warn_of_repeats,
)
from ._devices import check_device, check_movable, where_computed
from ._fit import PreparedHead, fit_many, train_or_wait
from ._members import members, n_members
from ._noise import check_noise, noise_caveats, noise_source
from ._rows import check_private_rows, head_outputs

Array = NDArray[Any]

_AMPLIFICATION_WARNING = "the amplification rests on numerical tests of its argument, not on a proof"


class LinearHead(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that train a private linear head."""

    #: What the names that ``algorithm`` accepts stand for.
    _kinds: ClassVar[dict[str, type[Algorithm]]] = BY_NAME

    #: For searches, which know estimators by what they can do.
    _fit_many = staticmethod(fit_many)

    # `X_pub` and `y_pub` are routed to fit by default, without set_fit_request.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True}

    def __init__(
        self,
        algorithm: Any,
        *,
        epsilon: Any,
        delta: Any,
        n_steps: Any,
        noise_multiplier: Any,
        learning_rate: Any,
        l2: Any,
        public_l2: Any,
        fit_intercept: Any,
        center: Any,
        normalize: Any,
        batch_size: Any,
        init: Any,
        neighboring: Any,
        noise: Any,
        ledger: Any,
        device: Any,
        dtype: Any,
        random_state: Any,
        verbose: Any,
    ) -> None:
        self.algorithm = algorithm
        self.epsilon = epsilon
        self.delta = delta
        self.n_steps = n_steps
        self.noise_multiplier = noise_multiplier
        self.learning_rate = learning_rate
        self.l2 = l2
        self.public_l2 = public_l2
        self.fit_intercept = fit_intercept
        self.center = center
        self.normalize = normalize
        self.batch_size = batch_size
        self.init = init
        self.neighboring = neighboring
        self.noise = noise
        self.ledger = ledger
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> "LinearHead":
        """Set parameters; ``algorithm__<name>`` reaches into an algorithm object.

        Raises
        ------
        ValueError
            For an unknown parameter, and for ``algorithm__<name>`` where ``algorithm`` is a
            name: a string has no parameters.
        """
        nested = [name for name in params if name.startswith("algorithm__")]
        algorithm = params.get("algorithm", self.algorithm)
        if nested and isinstance(algorithm, str):
            kind = self._kinds.get(algorithm, next(iter(self._kinds.values()))).__name__
            raise ValueError(
                f"{nested[0]} needs an algorithm object and algorithm={algorithm!r} is a name; "
                f"pass algorithm=skmixdp.algorithms.{kind}()."
            )
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fitting ---------------------------------------------------------------------------

    def _check_parameters(self) -> Budget:
        """Check every parameter that needs no data."""
        budget = check_budget(
            epsilon=self.epsilon,
            delta=self.delta,
            n_steps=self.n_steps,
            noise_multiplier=self.noise_multiplier,
            neighboring=self.neighboring,
            noise=self.noise,
        )
        self._chosen_algorithm()
        check_auto("learning_rate", self.learning_rate, zero=False)
        check_auto("l2", self.l2, zero=True)
        check_auto("public_l2", self.public_l2, zero=False)
        check_device(self.device)
        check_choice("dtype", self.dtype, ("float32", "float64", "bfloat16"))
        for name in ("fit_intercept", "center", "normalize"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        check_batch_size(self.batch_size, self.noise)
        check_verbose(self.verbose)
        check_ledger(self.ledger)
        if isinstance(self.init, str):
            check_choice("init", self.init, self._named_starts())
        check_noise(self.noise, self.random_state)
        return budget

    def _check_rows(
        self, X: Any, y: Any, X_pub: Any, y_pub: Any, check_target: CheckTarget, unsupported: dict[str, Any]
    ) -> tuple[Table, Array, tuple[Array, Array] | None]:
        """Check private and public rows; labels are not encoded yet, nor targets scaled."""
        refuse_unsupported(unsupported)
        warn_of_leaks(public_rows=X_pub is not None)
        table = check_private_rows(self, X)
        check_movable(table, check_device(self.device), noise=self.noise)
        n_rows, n_features = table.shape
        y = check_target(y, "y", n_rows, "X")
        names = getattr(self, "feature_names_in_", None)
        public = collect_public(X_pub, y_pub, names, n_features, check_target)
        warn_of_repeats(table)
        warn_of_delta(self.delta, n_members(n_rows))
        return table, y, public

    def _fit_head(
        self,
        budget: Budget,
        loss: Loss,
        table: Table,
        y: Array,
        public: tuple[Array, Array] | None,
        treated_as_public: tuple[str, ...],
    ) -> None:
        """Train the head on validated rows with encoded labels or scaled targets, and report."""
        own, n_features = members(table.shape[0]), table.shape[1]
        n_rows = n_members(table.shape[0])
        X_pub, y_pub = public if public is not None else (np.empty((0, n_features)), y[:0])
        y_map = y_pub if self._whitens(len(X_pub)) else None
        self._row_map = RowMap.of(X_pub, self.center, self.normalize, self.fit_intercept, y_map)
        l2 = None if self.public_l2 == "auto" else self.public_l2 * len(X_pub)
        data = PublicData(self._row_map(X_pub, np.float64), y_pub, loss, l2, self._products_dtype())
        sampling = self._sampling(n_rows)
        info = PublicInfo(
            view=data.view(self._start(data)),
            mu=budget.mu,
            n_private=n_rows,
            batch_size=sampling.rate(n_rows) * n_rows,
            row_norm_bound=self._row_map.norm_bound,
            start=self._start,
        )
        self._check_scale(info)
        dtype = self._products_dtype()
        noise = self._noise_source()
        options = Options(self.learning_rate, self.l2, sampling, exact_sums=noise.needs_grid)
        recipe = self._chosen_algorithm().recipe(info, options)
        plan = make_plan(budget, recipe, info, dtype)

        device = check_device(self.device)
        computed_on = where_computed(table, device, exact=noise.needs_grid)

        def finish(W: Array, charge: Charge | None) -> None:
            self.coef_, self.intercept_ = self._coefficients(W)
            self.n_iter_ = plan.n_steps
            self.learning_rate_ = plan.step_size(1)
            self.privacy_ = self._report(
                budget, plan, noise, n_rows, data.n_rows, treated_as_public, charge, computed_on
            )

        run = Run(recipe, plan, info, noise, dtype, members=own)
        train_or_wait(PreparedHead(self, table, y, self._row_map, run, device, finish))

    def _coefficients(self, W: Array) -> tuple[Any, Any]:
        """``coef_`` and ``intercept_`` of a trained head (k, d_in)."""
        return self._row_map.split(W, self.n_features_in_)

    def _whitens(self, n_public: int) -> bool:
        """Whether rows are whitened by what public rows of one class differ in."""
        return False

    def _named_starts(self) -> tuple[str, ...]:
        """The names that ``init`` accepts."""
        return "public", "zeros"

    def _chosen_algorithm(self) -> Algorithm:
        """The algorithm object that ``algorithm`` names or is."""
        return check_algorithm(self.algorithm)

    def _products_dtype(self) -> np.dtype[Any]:
        """Exact sums are computed in float64 whatever the rows' precision; bfloat16 is made wider."""
        if self.noise == "hardened":
            return np.dtype("float64")
        return np.dtype("float32" if self.dtype == "bfloat16" else self.dtype)

    def _sampling(self, n_rows: int) -> Sampling:
        if self.batch_size is None or self.batch_size == n_rows:
            return FullBatch()
        if self.batch_size > n_rows:
            raise ValueError(
                f"batch_size={self.batch_size} exceeds the {n_rows} private rows; pass a smaller one, or "
                "None for the full batch."
            )
        return PoissonBatch(self.batch_size)

    def _start(self, data: PublicData) -> Array:
        """The head before the first step, (k, d_in)."""
        if not isinstance(self.init, str):
            return self._row_map.join(self._given_start(), data.loss.n_outputs, self.n_features_in_)
        if self.init == "zeros" or data.n_rows == 0:
            return np.zeros((data.loss.n_outputs, data.X.shape[1]))
        return data.solution

    def _given_start(self) -> Array:
        """The coefficients in ``init``, for the targets on which the head is trained."""
        try:
            return np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"init={self.init!r} is no start of {type(self).__name__}; pass 'public', 'zeros' or an "
                "array."
            ) from None

    def _check_scale(self, info: PublicInfo) -> None:
        """A learning rate can only be derived for rows of a known scale."""
        if self.learning_rate == "auto" and not math.isfinite(info.largest_second_moment):
            raise ValueError(
                "learning_rate='auto' needs rows of a known scale; pass normalize=True, public "
                "rows, or a learning_rate."
            )

    def _noise_source(self) -> NoiseSource:
        return noise_source(self.noise, self.random_state)

    def _report(
        self,
        budget: Budget,
        plan: Plan,
        noise: NoiseSource,
        n_private: int,
        n_public: int,
        treated_as_public: tuple[str, ...],
        charge: Charge | None,
        computed_on: str = "cpu",
    ) -> PrivacyReport:
        caveats = noise_caveats(noise, self.delta, n_private)
        if plan.epsilon_unamplified is not None:
            caveats = (*caveats, _AMPLIFICATION_WARNING)
        return PrivacyReport(
            epsilon=plan.epsilon,
            delta=float(budget.delta),
            mu=plan.event.mu(budget.neighboring),
            noise_multiplier=plan.noise_multiplier,
            n_steps=plan.n_steps,
            sampling_rate=plan.event.sampling_rate,
            neighboring=budget.neighboring,
            accountant=accountant_name(plan.event),
            n_private=n_private,
            n_public=n_public,
            treated_as_public=treated_as_public,
            noise=noise.kind,
            warnings=caveats,
            epsilon_unamplified=plan.epsilon_unamplified,
            computed_on=computed_on,
            **paid(charge),
        )

    # -- predicting ------------------------------------------------------------------------

    def _outputs(self, X: Any) -> Array:
        """Outputs (n, k) of the fitted head."""
        check_is_fitted(self)
        return head_outputs(self, X)
