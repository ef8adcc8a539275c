"""The base class of estimators with a linear head: preparing a fit and computing outputs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._engine import Closing, Options, Run, Transaction, make_plan
from .._learning.corrections import LogitAdjustment
from .._learning.facts import Shares, variance_of_mean
from .._linear import Loss, row_norms
from .._rows import (
    Columns,
    PersonTable,
    RowMap,
    Table,
    check_lengths,
    check_private_rows,
    groups_of,
    labels_of,
)
from .._utils.validation import (
    CONVERSION_ERRORS,
    FLAG,
    NON_NEGATIVE,
    Allowed,
    Number,
    is_empty,
    shown,
    sources_of,
    warn_of_delta,
    warn_of_repeats,
)
from ..algorithms import BY_NAME, Algorithm
from ..components.protocols import PublicInfo
from ..components.public import PublicData
from ..components.updates import TowardsStart
from ..preprocessing._leaks import check_public_rows, warn_of_leaks
from ..privacy import LedgerDataset, Neighboring, Noise, PerInstanceRecord
from ..privacy.accounting.budgets import Budget
from ..privacy.units import units_of
from ._base import PrivateEstimator
from ._checks import CheckTarget, check_device, check_sample_weight, collect_public, public_facts, public_rows
from ._course import FitInputs, Mapped, MapRules, PlannedHead
from ._exports import EXPORTERS
from ._fit import FitData, members
from ._outputs import head_outputs

Array = NDArray[Any]

#: Times the number of public rows, and in squares, it must stay a float.
_PENALTY = Number("a positive finite number up to 1e100", low=0, high=1e100, closed="right")

_WEIGHT = Number("a finite number from 1e-100 to 1e100", low=1e-100, high=1e100, closed="both")

#: Private rows are asked for the mean if that of public rows has more than this many times the variance.
_TIMES_AS_GOOD = 2.0

#: With fewer columns, rows of unit length lose too much of their information.
_FEWEST_AT_UNIT_LENGTH = 4


@dataclass(frozen=True)
class Calibration:
    """How logits are corrected after the last step; None for what is left as it is.

    ``balancing_intercept`` is the constant of the intercept column, if public rows may balance the classes.
    """

    balancing_intercept: float | None = None
    temperature: Closing | None = None
    adjustment: LogitAdjustment | None = None


@dataclass(eq=False, repr=False)
class LinearHead(PrivateEstimator):
    """Base class of the estimators that train a private linear head."""

    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = BY_NAME

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PrivateEstimator._allowed,
        "l2": (NON_NEGATIVE, "auto"),
        "public_l2": (_PENALTY, "auto"),
        "dtype": ("float32", "float64"),
        "fit_intercept": (FLAG,),
        "center": (FLAG,),
        "row_norm": ("auto", "unit", "clip", None),
        "scale": (FLAG, "auto"),
        "whiten": (FLAG, "auto"),
        "geometry": (FLAG, "auto"),
        "max_sample_weight": (_WEIGHT, "auto"),
        "record_per_instance": (FLAG, "picklable"),
    }

    _saved: ClassVar[tuple[str, ...]] = (
        *("coef_", "intercept_", "n_features_in_", "feature_names_in_", "_row_map"),
        *PrivateEstimator._saved,
    )

    # Routed by default, as other public rows are.
    __metadata_request__fit: ClassVar = {"X_unlabeled": True}

    algorithm: Any = "auto"
    _: KW_ONLY
    epsilon: float | None = 1.0
    delta: float = 1e-5
    n_steps: int | None = None
    noise_multiplier: float | None = None
    learning_rate: Any = "auto"
    l2: Any = "auto"
    public_l2: Any = "auto"
    fit_intercept: bool = True
    center: bool = True
    whiten: Any = "auto"
    geometry: Any = "auto"
    row_norm: str | None = "auto"
    scale: Any = "auto"
    batch_size: int | None = None
    max_sample_weight: Any = "auto"
    init: Any = "public"
    neighboring: Neighboring = "add_or_remove_one"
    noise: Noise = "float"
    ledger: LedgerDataset | None = None
    record_per_instance: Any = False
    device: Any = "auto"
    dtype: str = "float32"
    random_state: Any = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fitting ---------------------------------------------------------------------------

    def _check_rows(
        self, data: FitData, check_target: CheckTarget
    ) -> tuple[Table, Array, Array, Array | None, Array | None]:
        """Checked private and public rows, labels not yet encoded, and the mask of the rows to fit to."""
        labels = labels_of(data.X, data.y)
        self._leaks = warn_of_leaks(public_rows=data.X_pub is not None, persons=data.groups is not None)
        table = check_private_rows(self, data.X)
        groups = groups_of(data.X, data.groups)
        if check_device(self.device) not in (None, "cpu"):
            if not table.is_movable:
                raise ValueError(
                    f"device={shown(self.device)} needs dense rows in memory, but X is a "
                    f"{type(table).__name__}; pass device='auto'."
                )
            if self.noise == "discrete":
                raise ValueError(
                    "noise='discrete' computes its exact sums on the CPU, not on "
                    f"device={shown(self.device)}; pass device='cpu', or noise='float'."
                )
            if groups is not None:
                raise ValueError(
                    f"device={shown(self.device)} cannot be combined with groups, whose rows are held on the "
                    "host; pass device='auto'."
                )
        n_rows, n_features = table.shape
        check_public_rows(n_rows, data.X_pub)
        check_public_rows(n_rows, data.X_unlabeled, "X_unlabeled")
        y = check_target(labels, "y", n_rows, "X")
        names = getattr(self, "feature_names_in_", None)
        public = collect_public(data.X_pub, data.y_pub, names, n_features, check_target)
        mask = None if data.rows is None else members(*data.rows, n_rows)
        if groups is not None:
            table, mask = PersonTable(table, *units_of(groups, n_rows, self.noise, mask)), None
        else:
            warn_of_repeats(table.n_distinct(), n_rows)
        warn_of_delta(self.delta, table.shape[0] if mask is None else int(mask.sum()))
        X_pub, y_pub = (np.empty((0, n_features)), None) if public is None else public
        return table, y, X_pub, y_pub, mask

    def _inputs(
        self,
        budget: Budget,
        loss: Loss,
        rows: tuple[Table, Array, Array, Array | None, Array | None],
        data: FitData,
        known: str,
        labels: tuple[Any, ...],
    ) -> FitInputs:
        """The inputs of a fit. Rows have been checked, labels encoded and targets scaled."""
        table, y, X_pub, y_pub, members = rows
        names, n_features = getattr(self, "feature_names_in_", None), table.shape[1]
        lengths, weights = self.row_norm is None, data.sample_weight is not None
        treated_as_public = (*public_facts(table, loss, lengths=lengths, weights=weights), known)
        if self._released_start is not None:
            treated_as_public = (*treated_as_public, self._check_released_start(n_features))
        X_unlabeled = None
        if not is_empty(data.X_unlabeled):
            sources = sources_of(data.X_unlabeled)
            parts = [public_rows(source, "X_unlabeled", names, n_features) for source in sources]
            X_unlabeled = np.concatenate(parts)
            stated = f"{len(X_unlabeled)} rows known to be public without labels"
            treated_as_public = (*treated_as_public, stated)
        if self.row_norm is None:
            for name, public in (("X_pub", X_pub), ("X_unlabeled", X_unlabeled)):
                if public is not None:
                    check_lengths(row_norms(public), self._products_dtype(), name)
        device, selected = check_device(self.device), None if table.unit == "row" else data.rows
        return FitInputs(
            transaction=Transaction(
                budget, type(self).__name__, self.ledger, self.random_state, self.__dict__.pop("_leaks")
            ),
            algorithm=self._chosen_algorithm(),
            loss=loss,
            table=table if device is None else table.on_device(device),
            y=y,
            X_pub=X_pub,
            y_pub=y[:0] if y_pub is None else y_pub,
            members=members,
            dtype=self._products_dtype(),
            treated_as_public=treated_as_public,
            passed=(data.X, data.y, data.sample_weight, data.groups, selected),
            labels=labels,
            record=self._record(table),
            X_unlabeled=X_unlabeled,
            sample_weight=check_sample_weight(data.sample_weight, len(y)),
            largest_weight=None if self.max_sample_weight == "auto" else float(self.max_sample_weight),
        )

    def _record(self, table: Table) -> PerInstanceRecord | None:
        """The record of each row's own privacy loss, if it was asked for."""
        if not self.record_per_instance:
            return None
        if self.batch_size is not None:
            self._refuse_record(
                f"batch_size={self.batch_size}, since random batches hide rows in a way that the record does "
                "not count",
                "batch_size=None",
            )
        if not table.can_be_observed:
            self._refuse_record("a Dask array, whose workers send back sums alone", "X.compute()")
        picklable = self.record_per_instance == "picklable"
        return PerInstanceRecord(table.shape[0], self.neighboring, self.noise, picklable=picklable)

    def _refuse_record(self, obstacle: str, remedy: str) -> NoReturn:
        raise ValueError(
            f"record_per_instance={self.record_per_instance!r} cannot be combined with {obstacle}; pass "
            f"{remedy}, or record_per_instance=False."
        )

    def _with_intercept(self, row_map: RowMap, inputs: FitInputs) -> RowMap:
        """A map with an intercept column, if the head has intercepts."""
        return row_map.with_intercept_for(inputs.X_known) if self.fit_intercept else row_map

    def _planned(
        self, inputs: FitInputs, mapped: Mapped, spent: dict[str, float], *, ahead: bool = False
    ) -> PlannedHead:
        """Plan the steps of a fit to mapped rows, with what is left of the squared budget.

        ``ahead`` of the map and with the least budget that may be left, the plan only serves to refuse what
        cannot be planned, before the charge.
        """
        share = 1 - sum(spent.values()) if spent else 1.0
        l2 = None if self.public_l2 == "auto" else self.public_l2 * len(inputs.X_pub)
        X_pub = mapped.row_map(inputs.X_pub, np.float64)
        data = PublicData(X_pub, inputs.y_pub_weighted, inputs.loss, l2, inputs.dtype)
        start = partial(self._start, mapped.row_map, inputs.label_logits)
        # Ahead of the map, a start by name is left unknown: fitting the public head takes long.
        unknown = ahead and isinstance(self.init, str)
        sampling = self._sampling(inputs.n_rows)
        info = PublicInfo(
            view=data.view(np.zeros((inputs.loss.n_outputs, data.X.shape[1])) if unknown else start(data)),
            mu=inputs.budget.mu * math.sqrt(share),
            n_private=inputs.n_rows,
            batch_size=sampling.rate(inputs.n_rows) * inputs.n_rows * inputs.mean_weight,
            row_norm_bound=mapped.row_map.norm_bound,
            start=start,
            second_moment=1.0 if ahead else mapped.second_moment,
            of_persons=inputs.table.unit != "row",
            preconditioner=mapped.preconditioner,
            gradient_bound=mapped.gradient_bound,
            centered=mapped.row_map.mean is not None,
            mean_weight=inputs.mean_weight,
        )
        if self.learning_rate == "auto" and not math.isfinite(info.largest_second_moment):
            raise ValueError(
                "learning_rate='auto' needs rows of a known scale; pass row_norm='unit', public rows, or a "
                "learning_rate."
            )
        calibration = self._calibration(inputs, mapped.row_map, info)
        options = Options(
            self.learning_rate,
            None if self.l2 == "auto" else self.l2,
            sampling,
            inputs.transaction.noise.needs_grid,
            calibration.balancing_intercept,
        )
        adjustment = calibration.adjustment
        # The temperature comes first: the adjustment is in units of calibrated logits.
        corrections = (calibration.temperature, None if adjustment is None else adjustment.closing)
        recipe = replace(
            inputs.algorithm.recipe(info, options),
            corrections=tuple(closing for closing in corrections if closing is not None),
        )
        if self._released_start is not None and recipe.closing is None:
            recipe = replace(recipe, update=TowardsStart(recipe.update))
        plan = make_plan(inputs.budget, recipe, info, inputs.dtype, share)
        if inputs.record is not None and plan.epsilon_unamplified is not None:
            self._refuse_record("ModelMix, whose guarantee rests on mixing", "another algorithm")
        shares = {} if plan.training_share == 1 else {**spent, "training": plan.training_share}
        if inputs.target_steps:
            # The first releases of the plan are no steps.
            total, left = plan.n_steps, plan.n_steps - inputs.target_steps
            if left < 1:
                raise ValueError(
                    f"the budget is enough for {total} releases, and the scale of the targets needs "
                    f"{inputs.target_steps} before the first step; pass target_scale from prior knowledge, "
                    "or a larger noise_multiplier."
                )
            plan = replace(plan, n_steps=left)
            shares = {"scale of the targets": inputs.target_steps / total, "training": left / total}
        for closing, _ in plan.closings:
            shares.update(closing.shares)
        report = partial(
            inputs.transaction.report,
            plan.event,
            inputs.n_rows,
            inputs.table.unit,
            inputs.treated_as_public,
            n_public=data.n_rows,
            plan=plan,
            computed_on="cpu" if inputs.transaction.noise.needs_grid else inputs.table.device,
            shares=tuple(shares.items()),
        )
        run = Run(recipe, plan, info, inputs.transaction.noise, inputs.dtype, members=inputs.members)
        return PlannedHead(run, mapped.row_map, report, adjustment)

    def _bound_shares(self, inputs: FitInputs) -> dict[str, float]:
        """Shares of the squared budget for a length that few gradients exceed; empty if none is needed."""
        return {}

    def _calibration(self, inputs: FitInputs, row_map: RowMap, info: PublicInfo) -> Calibration:
        """Corrections of the trained head; a regression has none."""
        return Calibration()

    def _map_rules(self, inputs: FitInputs) -> MapRules:
        """What the parameters allow for the map of a fit."""
        divides = self.batch_size is None and inputs.budget.is_divisible
        scales = self.row_norm is not None if self.scale == "auto" else bool(self.scale)
        whitens_alone = self.whiten != "auto" and bool(self.whiten) and len(inputs.X_known) == 0
        learned = self.geometry != "auto" and bool(self.geometry)
        unit = self.row_norm == "unit" or learned or whitens_alone
        preconditions = divides and inputs.is_default and self.row_norm is not None
        return MapRules(
            divides=divides,
            scales=scales,
            centres_columns=self.center and not unit,
            whitens_alone=whitens_alone,
            preconditions=preconditions,
            learns_columns=preconditions and scales and not inputs.transaction.noise.needs_grid,
        )

    def _clips(self, columns: Columns | None) -> bool:
        """Whether rows keep their length up to a bound.

        Columns of unknown centre are centred at unit length, unless it would leave too little of them.
        """
        if self.row_norm != "auto" or columns is None:
            return self.row_norm == "clip"
        return bool(columns.center.any()) or not self.center or len(columns.center) < _FEWEST_AT_UNIT_LENGTH

    def _learns_geometry(self, inputs: FitInputs, columns: Columns | None) -> bool:
        """Whether to learn the centre and the leading directions of the rows from private rows."""
        possible = {
            "center": self.center,
            "row_norm": self.row_norm in ("unit", "auto"),
            "batch_size": self.batch_size is None,
            "n_steps and noise_multiplier": inputs.budget.is_divisible,
            "init": isinstance(self.init, str) or callable(getattr(self.init, "start", None)),
        }
        if self.geometry == "auto":
            keeps_lengths = self._clips(columns) and not self._map_rules(inputs).whitens_alone
            wanted = inputs.is_default and not (inputs.loss.quadratic or keeps_lengths)
            if not (wanted and all(possible.values())):
                return False
            if not len(inputs.X_known):
                return True
            unit_pub = RowMap(None, True, None)(inputs.X_known, np.float64)
            n_features = inputs.table.shape[1]
            share = Shares.of(inputs.budget.mu, inputs.n_rows, n_features).mean
            noise = n_features / (inputs.n_rows * inputs.budget.mu) ** 2 / share
            return variance_of_mean(unit_pub) > _TIMES_AS_GOOD * noise
        if self.geometry and not all(possible.values()):
            obstacle = next(name for name, fits in possible.items() if not fits)
            raise ValueError(
                f"geometry=True cannot be combined with the given {obstacle}: it divides epsilon among "
                "full-batch releases of centred unit rows; leave that parameter at its default, or pass "
                "geometry=False."
            )
        return bool(self.geometry)

    def _coefficients(self, W: Array) -> tuple[Any, Any]:
        """``coef_`` and ``intercept_`` of a trained head (k, d_in)."""
        coef, intercept = self._row_map.split(W, self.n_features_in_)
        return np.ascontiguousarray(coef), intercept

    def _attributes_at(self, W: Array) -> dict[str, Any]:
        """The attributes of the estimator if its fit had stopped at a head, for callbacks."""
        coef, intercept = self._coefficients(W)
        return {"coef_": coef, "intercept_": intercept}

    def _products_dtype(self) -> np.dtype[Any]:
        """The dtype of the products: float64 for exact sums."""
        if self.noise == "discrete":
            return np.dtype("float64")
        dtype: np.dtype[Any] = np.dtype(self.dtype)
        return dtype

    def _start(self, row_map: RowMap, logits: Array | None, data: PublicData) -> Array:
        """The head before the first step, (k, d_in); ``logits`` (k,) are the outputs without public rows."""
        if not isinstance(self.init, str):
            return row_map.join(self._given_start(), data.loss.n_outputs, self.n_features_in_)
        if self.init == "public" and data.n_rows:
            return data.solution
        W = np.zeros((data.loss.n_outputs, data.X.shape[1]))
        if logits is not None and row_map.intercept_value is not None:
            W[:, -1] = logits / row_map.intercept_value
        return W

    @property
    def _released_start(self) -> "LinearHead | None":
        """The released head in ``init`` that the fit continues from; None for another start."""
        model = self.init.estimator if isinstance(self.init, FrozenEstimator) else self.init
        return model if isinstance(model, LinearHead) else None

    def _check_parameters(self) -> Budget:
        budget = super()._check_parameters()
        if (model := self._released_start) is not None:
            if type(model) is not type(self):
                raise TypeError(
                    f"init is a {type(model).__name__}, and this is a {type(self).__name__}; pass a head of "
                    "the same class."
                )
            if not hasattr(model, "coef_"):
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
        names, known = getattr(self, "feature_names_in_", None), getattr(model, "feature_names_in_", None)
        differ = names is not None and known is not None and list(names) != list(known)
        if model.n_features_in_ != n_features or differ:
            raise ValueError(
                f"init was fitted to {model.n_features_in_} features and X has {n_features}, or their names "
                "differ; pass the same columns in the same order."
            )
        report = model.privacy_
        charged = "no ledger" if report.dataset is None else f"the data set {report.dataset!r} of a ledger"
        return (
            f"the start, a released head (epsilon={report.epsilon:.3g} and delta={report.delta:.3g} of its "
            f"own, charged to {charged}; for people in both fits, both budgets add up)"
        )

    def _given_start(self) -> Array:
        """The coefficients in ``init``, in the units of training."""
        if (model := self._released_start) is not None:
            coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
            return np.column_stack([coef, intercept]) if self.fit_intercept else coef
        try:
            return np.asarray(self.init, dtype=np.float64)
        except CONVERSION_ERRORS:
            raise ValueError(
                f"init={shown(self.init)} is not a valid start of {type(self).__name__}; pass 'public', "
                "'zeros' or an array."
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
        return EXPORTERS["onnx"](self, dtype)

    def to_sklearn(self) -> Any:
        """The fitted estimator as a scikit-learn pipeline that needs no skmixdp.

        The pipeline consists of scikit-learn's transformers and a ``LogisticRegression`` or ``Ridge``, with
        fitted attributes set. For several labels per row, it ends in a ``OneVsRestClassifier``, whose classes
        are numbers. Its methods ``predict``, ``predict_proba``, ``decision_function`` and ``score`` agree
        with those of this estimator up to rounding. It takes dense rows.

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
        return EXPORTERS["sklearn"](self)

    def _outputs(self, X: Any) -> Array:
        """Outputs (n, k) of the fitted head."""
        check_is_fitted(self)
        return head_outputs(self, X)
