"""The base class of estimators with a linear head: preparing a fit and computing outputs."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._engine import Transaction
from .._fit.procedure import prepared, procedure
from .._fit.stage import Data, Fit, LabelledRows, Labels, PublicRows, RowSettings, Settings, Weights
from .._fit.stages import STAGES
from .._fit.stages.training import NamedStart, refuse_record
from .._linear.arrays import row_norms
from .._linear.losses import Loss
from .._rows.blockwise import check_lengths
from .._rows.persons import PersonTable
from .._rows.row_map import RowMap, TargetMap
from .._rows.source import Table
from .._rows.table import check_private_rows, groups_of, labels_of
from .._utils.lazy_imports import annex
from .._utils.models import names_of_features
from .._utils.validation import FLAG, NON_NEGATIVE, Allowed, Number, check_params, is_empty, shown, sources_of
from ..algorithms import BY_NAME, Algorithm, Auto
from ..algorithms.auto import AutoRegression
from ..preprocessing._leaks._enclosing import check_public_rows, warn_of_leaks
from ..privacy import LedgerDataset, PerInstanceRecord
from ..privacy.accounting.budgets import Budget
from ..privacy.accounting.events import Neighboring, Noise
from ..privacy.units import units_of
from ._base import EstimatorProcedure, FitData, PrivateEstimator, selected_rows
from ._callbacks import FitTasks
from ._outputs import head_outputs
from ._problem import (
    WEIGHT,
    CheckTarget,
    check_device,
    check_sample_weight,
    check_width,
    collect_public,
    public_facts,
    public_rows,
)
from ._row_mapping import DECLARED, ROW_MAPPING, RowMapping, declared_scales, kinds_of_columns

Array = NDArray[Any]

#: Its square, and its product with the number of public rows, must not overflow.
_PENALTY = Number("a positive finite number up to 1e100", low=0, high=1e100, closed="right")


@dataclass
class CheckedRows:
    """The rows to fit to, with labels or targets as they were passed, and the mask of those selected."""

    table: Table
    y: Array
    X_pub: Array
    y_pub: Array | None
    selected: Array | None


@dataclass(eq=False, repr=False)
class LinearHead(PrivateEstimator):
    """Base class of the estimators that train a private linear head, with the parameters of them all."""

    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = BY_NAME

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PrivateEstimator._allowed,
        "l2": (NON_NEGATIVE, "auto"),
        "public_l2": (_PENALTY, "auto"),
        "dtype": ("float32", "float64"),
        "fit_intercept": (FLAG,),
        "rows": ("auto", ROW_MAPPING),
        "scale": (FLAG, "auto", DECLARED),
        "max_sample_weight": (WEIGHT, "auto"),
        "record_per_instance": (FLAG, "picklable"),
    }

    _saved: ClassVar[tuple[str, ...]] = (
        *("coef_", "intercept_", "n_features_in_", "feature_names_in_", "_row_map"),
        *PrivateEstimator._saved,
    )

    #: What ``norm="auto"`` of the rows stands for; "auto" depends on the columns.
    _norm: ClassVar[str] = "auto"

    #: Whether rows may have NaN and infinite numbers.
    _takes_missing: ClassVar[bool] = False

    # Routed by default, like other public rows.
    __metadata_request__fit: ClassVar = {"X_unlabeled": True}

    _: KW_ONLY
    epsilon: float | None = 1.0
    delta: float = 1e-5
    scale: Any = "auto"
    max_sample_weight: Any = "auto"
    neighboring: Neighboring = "add_or_remove_one"
    ledger: LedgerDataset | None = None
    random_state: Any = None

    # Settings that only some heads have as parameters.
    algorithm = learning_rate = l2 = public_l2 = rows = device = cast(Any, "auto")
    n_steps = noise_multiplier = batch_size = cast(Any, None)
    fit_intercept = cast(Any, True)
    record_per_instance = verbose = cast(Any, False)
    init, noise, dtype = cast(Any, ("public", "float", "float32"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    # -- fitting ---------------------------------------------------------------------------

    def _check_rows(self, data: FitData, check_target: CheckTarget, kind: str = "targets") -> CheckedRows:
        """Checked private and public rows, whose labels or targets are of a ``kind`` in messages."""
        for name in ("class_shares_", "per_instance_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        labels = labels_of(data.X, data.y)
        self._leaks = warn_of_leaks(
            data.X, public_rows=data.X_pub is not None, persons=data.groups is not None
        )
        table = check_private_rows(self, data.X)
        groups = groups_of(data.X, data.groups)
        if check_device(self.device) not in (None, "cpu"):
            device = f"device={shown(self.device)}"
            dense = f"{device} needs dense rows in memory, but X is a {type(table).__name__}"
            exact = f"noise='discrete' computes its exact sums on the CPU, not on {device}"
            persons = f"{device} cannot be combined with groups, whose rows are held on the host"
            for wrong, obstacle, remedy in (
                (not table.is_movable, dense, "device='auto'"),
                (self.noise == "discrete", exact, "device='cpu', or noise='float'"),
                (groups is not None, persons, "device='auto'"),
            ):
                if wrong:
                    raise ValueError(f"{obstacle}; pass {remedy}.")
        n_rows, n_features = table.shape
        check_public_rows(n_rows, data.X_pub)
        check_public_rows(n_rows, data.X_unlabeled, "X_unlabeled")
        y = check_target(labels, "y", n_rows, "X")
        names = vars(self).get("feature_names_in_")
        finite = not self._takes_missing
        public = collect_public(data.X_pub, data.y_pub, names, n_features, check_target, finite=finite)
        mask = None if data.rows is None else selected_rows(*data.rows, n_rows)
        if groups is not None:
            table, mask = PersonTable(table, *units_of(groups, n_rows, self.noise, mask)), None
        X_pub, y_pub = (np.empty((0, n_features)), None) if public is None else public
        if y_pub is not None and y_pub.ndim > 1:
            check_width(y_pub, y.shape[1], kind, "y has", "y_pub")
        return CheckedRows(table, y, X_pub, y_pub, mask)

    def _fit_of(self, rows: CheckedRows, loss: Loss, budget: Budget, data: FitData, fact: str) -> Fit:
        """The fit before it begins, of checked rows with encoded labels or scaled targets."""
        table, X_pub = rows.table, rows.X_pub
        names, n_features = vars(self).get("feature_names_in_"), table.shape[1]
        finite, weights = not self._takes_missing, data.sample_weight is not None
        mapping = self._row_settings()
        lengths = mapping["norm"] is None
        facts = [*public_facts(table, loss, finite=finite, lengths=lengths, weights=weights), fact]
        if self._released_start is not None:
            facts.append(self._check_released_start(n_features))
        declared = declared_scales(self, n_features)
        if declared is not None:
            facts.append(f"the scale of {len(self.scale)} columns (declared)")
        X_unlabeled = None
        if not is_empty(data.X_unlabeled):
            sources = sources_of(data.X_unlabeled)
            parts = [public_rows(each, "X_unlabeled", names, n_features, finite=finite) for each in sources]
            X_unlabeled = np.concatenate(parts)
            facts.append(f"{len(X_unlabeled)} rows known to be public without labels")
        if lengths:
            for name, public in (("X_pub", X_pub), ("X_unlabeled", X_unlabeled)):
                if public is not None:
                    check_lengths(row_norms(public), self._products_dtype(), name)
        record = None
        if self.record_per_instance:
            if self.batch_size is not None:
                refuse_record(
                    self.record_per_instance,
                    f"batch_size={self.batch_size}, since random batches hide rows in a way that the record "
                    "does not count",
                    "batch_size=None",
                )
            if not table.can_be_observed:
                obstacle = "a Dask array, whose workers send back sums alone"
                refuse_record(self.record_per_instance, obstacle, "X.compute()")
            picklable = self.record_per_instance == "picklable"
            record = PerInstanceRecord(table.shape[0], self.neighboring, self.noise, picklable=picklable)
        device, leaks = check_device(self.device), self.__dict__.pop("_leaks")
        transaction = Transaction(budget, type(self).__name__, self.ledger, self.random_state, leaks)
        private = LabelledRows(
            table if device is None else table.on_device(device),
            rows.y,
            self._products_dtype(),
            transaction.noise.needs_grid,
            record,
        )
        algorithm = self._chosen_algorithm()
        start = self._released_start
        settings = Settings(
            algorithm=algorithm,
            is_default=isinstance(algorithm, AutoRegression if loss.quadratic else Auto),
            learning_rate=self.learning_rate,
            l2=self.l2,
            public_l2=self.public_l2,
            batch_size=self.batch_size,
            init=self.init if isinstance(self.init, str) else self._start_of_training(),
            rows=RowSettings(
                fit_intercept=self.fit_intercept,
                **mapping,
                scale=bool(self.scale) if isinstance(self.scale, (bool, np.bool_)) else "auto",
                kinds=kinds_of_columns(n_features),
                declared=declared,
            ),
            known_map=None if start is None else start._row_map,
            facts=tuple(facts),
        )
        rows_to_fit = Data(private, loss, rows.selected)
        largest = None if self.max_sample_weight == "auto" else float(self.max_sample_weight)
        sample_weight = check_sample_weight(data.sample_weight, len(rows.y))
        return Fit(
            stages=STAGES,
            settings=settings,
            transaction=transaction,
            tasks=FitTasks(self, self._attributes_at),
            data=rows_to_fit,
            public=PublicRows(X_pub, rows.y[:0] if rows.y_pub is None else rows.y_pub, X_unlabeled),
            weights=Weights(rows_to_fit, sample_weight, largest),
            labels=Labels(),
        )

    def _prepared(self, fit: Fit, data: FitData) -> EstimatorProcedure:
        """The procedure of a fit with checked inputs, after everything that can be refused."""
        fit = prepared(fit, data.earlier)
        if fit.data.private.table.unit == "row":  # persons are numbered anew in each selection
            data.earlier.append(fit)
        return self._released(fit)

    def _released(self, fit: Fit) -> EstimatorProcedure:
        """The procedure of a prepared fit, which returns the fitted attributes."""
        fit = yield from procedure(fit)
        head, plan, private = fit.head, fit.plan, fit.data.private
        assert head is not None and plan is not None
        fitted = self._attributes_at(head.W, fit.mapping.row_map, fit.labels.target_map)
        if not (np.all(np.isfinite(fitted["coef_"])) and np.all(np.isfinite(fitted["intercept_"]))):
            raise ValueError(
                f"the head diverged: its coefficients are not finite; pass learning_rate='auto' (now "
                f"{shown(self.learning_rate)}), a larger epsilon, or rows and targets of a usual "
                "scale."
            )
        report = fit.transaction.report(
            fit.settings.facts,
            n_public=len(fit.public.X),
            plan=plan,
            computed_on="cpu" if private.exact else private.table.device,
            shares=fit.shares,
        )
        fitted |= {"learning_rate_": plan.step_size(1), "n_iter_": head.n_steps, "privacy_": report}
        if private.record is not None:
            fitted["per_instance_"] = private.record
        if fit.labels.shares is not None:
            fitted["class_shares_"] = fit.labels.shares
        return fitted

    def _attributes_at(self, W: Array, row_map: RowMap, target_map: TargetMap | None) -> dict[str, Any]:
        """The fitted attributes if the fit stops at a head (k, d_in) of mapped rows and targets."""
        coef, intercept = row_map.split(W)
        return {"coef_": np.ascontiguousarray(coef), "intercept_": intercept, "_row_map": row_map}

    def _row_settings(self) -> dict[str, Any]:
        """The checked parameters of ``rows``."""
        rows = RowMapping() if isinstance(self.rows, str) else self.rows
        checked = check_params(rows, rows._allowed, named=True)
        return checked | {"norm": self._norm if rows.norm == "auto" else rows.norm}

    def _products_dtype(self) -> np.dtype[Any]:
        """The dtype of the products: float64 for exact sums."""
        return np.dtype("float64" if self.noise == "discrete" else self.dtype)

    @property
    def _released_start(self) -> "LinearHead | None":
        """The released head in ``init`` that the fit continues from; None for another start."""
        model = self.init.estimator if isinstance(self.init, FrozenEstimator) else self.init
        return model if isinstance(model, LinearHead) else None

    def _check_parameters(self) -> Budget:
        budget = super()._check_parameters()
        self._row_settings()
        if (model := self._released_start) is not None:
            if type(model) is not type(self):
                raise TypeError(
                    f"init is a {type(model).__name__}, and this is a {type(self).__name__}; pass a head of "
                    "the same class."
                )
            if "coef_" not in vars(model):
                raise ValueError(
                    "init is not fitted, or a copy made by clone forgot its fit; pass a fitted head, in "
                    "sklearn.frozen.FrozenEstimator(...) if the estimator is cloned."
                )
            if self.fit_intercept is not model.fit_intercept:
                raise ValueError(
                    f"fit_intercept={self.fit_intercept!r} is not that of init; pass {model.fit_intercept!r}."
                )
        return budget

    def _check_released_start(self, n_features: int) -> str:
        """Refuse a released head for other features; the text of the report on it."""
        model = self._released_start
        assert model is not None
        names, names_of_start = map(names_of_features, (self, model))
        differ = names is not None and names_of_start is not None and list(names) != list(names_of_start)
        if model.n_features_in_ != n_features or differ:
            raise ValueError(
                f"init was fitted to {model.n_features_in_} features and X has {n_features}, or their names "
                "differ; pass the same columns in the same order."
            )
        report = model.privacy_
        charged = "no ledger" if report.dataset is None else f"the data set {report.dataset!r} of a ledger"
        cost = f"epsilon={report.epsilon:.3g} and delta={report.delta:.3g} of its own"
        return (
            f"the start, a released head ({report.no_guarantee or cost}, charged to {charged}; for people in "
            "both fits, both budgets add up)"
        )

    def _start_of_training(self) -> Array | NamedStart:
        """The coefficients in ``init``, in the units of training."""
        if (model := self._released_start) is not None:
            coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
            return np.column_stack([coef, intercept]) if self.fit_intercept else coef
        try:
            return np.asarray(self.init, dtype=np.float64)
        except Exception:
            remedy = "pass 'public', 'zeros' or an array"
            if isinstance(self.init, ClassifierMixin | RegressorMixin | Pipeline):
                remedy = "pass the public rows that it was fitted to as X_pub and y_pub, with init='public'"
            raise ValueError(
                f"init={shown(self.init)} is not a valid start of {type(self).__name__}; {remedy}."
            ) from None

    # -- predicting and serving -------------------------------------------------------------

    def to_onnx(self, *, dtype: str = "float64") -> Any:
        """The fitted estimator as an ONNX model, from raw rows to predictions.

        Centring, whitening and scaling of the rows are part of the model. The input ``X`` has shape
        (n_samples, n_features). A classifier has the outputs ``label`` (n_samples,) and ``probabilities``
        (n_samples, n_classes), with the columns in the order of ``classes_``. With several labels per row,
        both have the shape (n_samples, n_labels). A regressor has the output
        ``predictions``, of the shape of ``predict``. The privacy report is in the model's metadata, under
        the key ``privacy``.

        Parameters
        ----------
        dtype : {"float64", "float32"}, default="float64"
            Type of the input, of all computations and of the numbers that come out. "float64" agrees with
            :meth:`predict_proba` to about 1e-12. "float32" is for runtimes without double precision. It
            agrees to about 1e-6, unless columns have a mean far larger than their spread.

        Returns
        -------
        onnx.ModelProto
            The model. ``onnx.save(model, path)`` writes it to a file.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ImportError
            If the package onnx is missing; ``pip install "skmixdp[onnx]"`` installs it.
        ValueError, TypeError
            For another ``dtype``, and for classes that are not integers, bools, strings or real numbers.

        Notes
        -----
        The model does not check its input: a row with NaN gives NaN where ``predict`` raises an error.
        """
        check_is_fitted(self)
        return annex("to_onnx")(self, dtype)

    def to_sklearn(self) -> Any:
        """The fitted estimator as a scikit-learn pipeline that needs no skmixdp.

        The pipeline consists of scikit-learn's transformers and a ``LogisticRegression``, ``Ridge`` or
        ``PoissonRegressor``, with fitted attributes set. For several labels per row, it ends in a
        ``OneVsRestClassifier``, whose classes are numbers. Its methods ``predict``, ``predict_proba``,
        ``decision_function`` and ``score`` agree with those of this estimator up to rounding. It takes dense
        rows.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The fitted pipeline. It can be pickled, and unpickled where only scikit-learn is installed.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.

        Notes
        -----
        The pipeline is for predictions. Do not fit it again: scikit-learn's ``fit`` gives no privacy.
        """
        check_is_fitted(self)
        return annex("to_sklearn")(self)

    def _outputs(self, X: object, *, decisive: bool = False) -> Array:
        """Outputs (n, k) of the fitted head; ``decisive`` ones need only tell what is predicted."""
        check_is_fitted(self)
        return head_outputs(self, X, decisive=decisive)


@dataclass(eq=False, repr=False)
class TrainedHead(LinearHead):
    """Base class of the heads that have parameters of the map of the rows and of the optimisation."""

    algorithm: Any = "auto"
    _: KW_ONLY
    n_steps: int | None = None
    noise_multiplier: float | None = None
    learning_rate: Any = "auto"
    l2: Any = "auto"
    public_l2: Any = "auto"
    fit_intercept: bool = True
    rows: Any = "auto"
    batch_size: int | None = None
    init: Any = "public"
    noise: Noise = "float"
    record_per_instance: Any = False
    device: Any = "auto"
    dtype: str = "float32"
    verbose: int = 0
