"""The base class of estimators with a linear head: preparing a fit and computing outputs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._engine import Budget, Plan, Recipe, Run, make_plan
from .._engine.geometry import can_compare_starts, length_share
from .._linear import Loss, row_norms
from .._rowmap import RowMap, column_scale
from .._rows import Table, check_lengths
from .._utils.validation import (
    CONVERSION_ERRORS,
    FLAG,
    NON_NEGATIVE,
    Allowed,
    Number,
    shown,
    warn_of_delta,
    warn_of_repeats,
)
from ..algorithms import BY_NAME, Algorithm
from ..components import LogitAdjustment
from ..components.protocols import PublicInfo
from ..privacy import PerInstanceRecord
from ..privacy.noise import noise_source
from ..public import PublicData
from ._base import PrivateEstimator
from ._checks import (
    CheckTarget,
    check_device,
    check_movable,
    check_private_rows,
    collect_public,
    given_labels,
)
from ._enclosing import check_public_rows, warn_of_leaks
from ._exports import to_onnx
from ._fit import FitData, members
from ._outputs import head_outputs
from ._stages import (
    GeometryLearner,
    HeadInputs,
    LengthLearner,
    PreparedHead,
    Stage,
    few_for_whitening,
    needs_private_rows,
)

Array = NDArray[Any]

#: Times the number of public rows, and in squares, it must stay a float.
_PENALTY = Number("a positive finite number up to 1e100", low=0, high=1e100, closed="right")


def _shares_with(
    shares: tuple[tuple[str, float], ...], plan: Plan, adjustment: LogitAdjustment | None
) -> tuple[tuple[str, float], ...]:
    """What the budget was spent on, the training and the closing releases included."""
    if plan.training_share == 1:
        return ()
    spent = {**dict(shares), "training": plan.training_share}
    if plan.closing_multiplier is not None:
        rest = 1 - sum(spent.values())
        adjusting = {} if adjustment is None else adjustment.spent
        if adjustment is None or adjustment.recipe.closing is not None:
            spent["comparison"] = rest - sum(adjusting.values())
        spent.update(adjusting)
    return tuple(spent.items())


class LinearHead(PrivateEstimator):
    """Base class of the estimators that train a private linear head."""

    _algorithms: ClassVar[Mapping[str, Callable[[], Algorithm]]] = BY_NAME

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **PrivateEstimator._allowed,
        "l2": (NON_NEGATIVE, "auto"),
        "public_l2": (_PENALTY, "auto"),
        "dtype": ("float32", "float64", "bfloat16"),
        "fit_intercept": (FLAG,),
        "center": (FLAG,),
        "row_norm": ("unit", "clip", None),
        "scale": (FLAG, "auto"),
        "whiten": (FLAG, "auto"),
        "geometry": (FLAG, "auto"),
        "record_per_instance": (FLAG, "picklable"),
    }

    _saved: ClassVar[tuple[str, ...]] = (
        *("coef_", "intercept_", "n_features_in_", "feature_names_in_", "_row_map"),
        *PrivateEstimator._saved,
    )

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
        whiten: Any,
        geometry: Any,
        row_norm: Any,
        scale: Any,
        batch_size: Any,
        init: Any,
        neighboring: Any,
        noise: Any,
        ledger: Any,
        record_per_instance: Any,
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
        self.whiten = whiten
        self.geometry = geometry
        self.row_norm = row_norm
        self.scale = scale
        self.batch_size = batch_size
        self.init = init
        self.neighboring = neighboring
        self.noise = noise
        self.ledger = ledger
        self.record_per_instance = record_per_instance
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fitting ---------------------------------------------------------------------------

    def _check_rows(
        self, data: FitData, check_target: CheckTarget
    ) -> tuple[Table, Array, Array, Array | None, Array | None]:
        """Checked private and public rows with their labels, and the mask of the private rows to fit to.

        Labels are not encoded yet, and targets are not scaled yet.
        """
        given = given_labels(data.X, data.y)
        warn_of_leaks(public_rows=data.X_pub is not None)
        table = check_private_rows(self, data.X)
        check_movable(table, check_device(self.device), noise=self.noise)
        n_rows, n_features = table.shape
        check_public_rows(n_rows, data.X_pub)
        y = check_target(given, "y", n_rows, "X")
        names = getattr(self, "feature_names_in_", None)
        public = collect_public(data.X_pub, data.y_pub, names, n_features, check_target)
        own = members(data.rows, n_rows)
        warn_of_repeats(table.n_distinct(), n_rows)
        warn_of_delta(self.delta, n_rows if own is None else int(own.sum()))
        X_pub, y_pub = (np.empty((0, n_features)), None) if public is None else public
        return table, y, X_pub, y_pub, own

    def _inputs(
        self,
        budget: Budget,
        loss: Loss,
        table: Table,
        y: Array,
        X_pub: Array,
        y_pub: Array | None,
        own: Array | None,
        treated_as_public: tuple[str, ...],
    ) -> HeadInputs:
        """The inputs of a fit. Rows have been checked, labels encoded and targets scaled."""
        if self.row_norm is None:
            check_lengths(row_norms(X_pub), self._products_dtype(), "X_pub")
        return HeadInputs(
            budget=budget,
            algorithm=self._chosen_algorithm(),
            loss=loss,
            table=table,
            y=y,
            X_pub=X_pub,
            y_pub=y[:0] if y_pub is None else y_pub,
            own=own,
            noise=noise_source(self.noise, self.random_state),
            dtype=self._products_dtype(),
            treated_as_public=treated_as_public,
            record=self._record(table),
        )

    def _record(self, table: Table) -> PerInstanceRecord | None:
        """What adds up each row's own privacy loss, if that was asked for and can be had."""
        if not self.record_per_instance:
            return None
        if self.batch_size is not None:
            self._refuse_record(
                f"batch_size={self.batch_size}, since random batches hide rows in a way that the record does "
                "not count",
                "batch_size=None",
            )
        if self.dtype == "bfloat16":
            self._refuse_record("dtype='bfloat16', which rounds what rows contribute", "dtype='float32'")
        if not table.can_be_observed:
            self._refuse_record("a Dask array, whose workers send back sums alone", "X.compute()")
        picklable = self.record_per_instance == "picklable"
        return PerInstanceRecord(table.shape[0], self.neighboring, self.noise, picklable=picklable)

    def _refuse_record(self, obstacle: str, remedy: str) -> NoReturn:
        raise ValueError(
            f"record_per_instance={self.record_per_instance!r} cannot be combined with {obstacle}; pass "
            f"{remedy}, or record_per_instance=False."
        )

    def _first_stage(self, inputs: HeadInputs) -> PreparedHead:
        """The first stage of a fit: the training, or something that it needs from private rows."""
        X_pub, prepare = inputs.X_pub, partial(self._planned, inputs)
        if self._learns_geometry(inputs):
            whiten = self.whiten is not False
            scale = column_scale(inputs.scale_rows) if self._scales() else None
            groups = None if len(X_pub) == 0 or few_for_whitening(inputs) else inputs.groups
            start_scales, finish = self._start_scales(inputs), partial(self._checked, inputs)
            return GeometryLearner(
                inputs, prepare, groups, scale, start_scales, whiten, self.fit_intercept, finish
            ).first()
        if self.whiten != "auto" and self.whiten and len(X_pub) == 0:
            raise ValueError("whiten=True needs public rows; pass X_pub and y_pub, or whiten=False.")
        if share := self._length_share(inputs):
            return LengthLearner(inputs, prepare, share, self.fit_intercept).first()
        row_map = self._public_map(inputs)
        return self._checked(inputs, Stage(row_map, row_map(X_pub, np.float64)))

    def _checked(self, inputs: HeadInputs, stage: Stage) -> PreparedHead:
        """The training; for classifiers, after a check of the start if one is possible."""
        return self._planned(inputs, stage)

    def _public_map(self, inputs: HeadInputs) -> RowMap:
        """The map of the rows that public rows tell."""
        X_pub = inputs.X_pub
        whiten = inputs.is_default if self.whiten == "auto" else bool(self.whiten)
        return RowMap.of(
            X_pub,
            self.center,
            self.row_norm is not None,
            self.fit_intercept,
            inputs.groups if whiten and len(X_pub) else None,
            clip=self.row_norm == "clip",
            scale=self._scales(),
        )

    def _planned(self, inputs: HeadInputs, stage: Stage) -> PreparedHead:
        """Plan the steps of a fit for rows after the map of this stage."""
        stage = stage.after(inputs.spent)
        self._row_map, n_rows, noise = stage.row_map, inputs.n_rows, inputs.noise
        l2 = None if self.public_l2 == "auto" else self.public_l2 * len(inputs.X_pub)
        data = PublicData(stage.seen_pub, inputs.y_pub, inputs.loss, l2, inputs.dtype)
        options = self._options(n_rows, noise, self.l2)
        if self._may_balance(inputs, data):
            options = replace(options, balancing_intercept=stage.row_map.intercept_value)
        # The public head takes long to find. A start that is given is checked in any case.
        needs_start = not stage.passes_once or not isinstance(self.init, str)
        start = self._start(data) if needs_start else np.zeros((inputs.loss.n_outputs, data.X.shape[1]))
        info = PublicInfo(
            view=data.view(stage.start_scale * start),
            mu=inputs.budget.mu * math.sqrt(stage.training_share),
            n_private=n_rows,
            batch_size=options.sampling.rate(n_rows) * n_rows,
            row_norm_bound=stage.row_map.norm_bound,
            start=self._start,
            second_moment=stage.second_moment,
            centered=stage.row_map.mean is not None,
        )
        self._check_scale(info)
        recipe = inputs.algorithm.recipe(info, options)
        adjustment = self._adjustment(inputs, info, recipe)
        if adjustment is not None:
            recipe = adjustment.adjusted()
        plan = make_plan(inputs.budget, recipe, info, inputs.dtype, stage.training_share)
        if inputs.record is not None and plan.epsilon_unamplified is not None:
            self._refuse_record("ModelMix, whose guarantee rests on mixing", "another algorithm")
        device = check_device(self.device)
        report = partial(
            self._report,
            inputs.budget,
            plan,
            noise,
            n_rows,
            data.n_rows,
            inputs.treated_as_public,
            computed_on="cpu" if noise.needs_grid else device or inputs.table.device,
            shares=_shares_with(stage.shares, plan, adjustment),
        )
        return PreparedHead(
            estimator=self,
            run=Run(recipe, plan, info, noise, inputs.dtype, members=inputs.own),
            table=inputs.table,
            y=inputs.y,
            row_map=stage.row_map,
            device=device,
            report=report,
            adjustment=adjustment,
            record=inputs.record,
            learn=stage.learn,
            passes_once=stage.passes_once,
        )

    def _may_balance(self, inputs: HeadInputs, data: PublicData) -> bool:
        """Whether public rows may balance the classes of the trained head."""
        return False

    def _adjustment(self, inputs: HeadInputs, info: PublicInfo, recipe: Recipe) -> LogitAdjustment | None:
        """A correction for class shares at the end of the fit, if there are classes."""
        return None

    def _start_scales(self, inputs: HeadInputs) -> Array | None:
        """Factors of the start that private rows compare; None if there is nothing to choose."""
        scales_of = getattr(self.init, "scales_to_compare", None)
        scales = scales_of(len(inputs.X_pub)) if callable(scales_of) else None
        if scales is None or not can_compare_starts(inputs.budget.mu, inputs.n_rows, len(scales)):
            return None
        return np.asarray(scales)

    def _scales(self) -> bool:
        """Whether columns may be scaled by public rows."""
        return self.row_norm is not None if self.scale == "auto" else bool(self.scale)

    def _length_share(self, inputs: HeadInputs) -> float:
        """Share of the budget for the usual length of the rows, which public rows would tell at no cost."""
        needed = self.row_norm == "clip" and len(inputs.X_pub) == 0
        possible = inputs.budget.is_divisible and self.batch_size is None and not inputs.noise.needs_grid
        return length_share(inputs.budget.mu, inputs.n_rows) if needed and possible else 0.0

    def _learns_geometry(self, inputs: HeadInputs) -> bool:
        """Whether to learn the centre and the leading directions of the rows from private rows."""
        possible = {
            "center": self.center,
            "row_norm": self.row_norm == "unit",
            "batch_size": self.batch_size is None,
            "n_steps and noise_multiplier": inputs.budget.is_divisible,
            "init": isinstance(self.init, str) or callable(getattr(self.init, "start", None)),
        }
        if self.geometry == "auto":
            return inputs.is_default and all(possible.values()) and needs_private_rows(inputs)
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
        """The dtype of the products: float64 for exact sums, float32 for bfloat16 rows."""
        if self.noise == "discrete":
            return np.dtype("float64")
        return np.dtype("float32" if self.dtype == "bfloat16" else self.dtype)

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
        except CONVERSION_ERRORS:
            raise ValueError(
                f"init={shown(self.init)} is not a valid start of {type(self).__name__}; pass 'public', "
                "'zeros' or an array."
            ) from None

    def _check_scale(self, info: PublicInfo) -> None:
        """Refuse ``learning_rate="auto"`` for rows of unknown scale."""
        if self.learning_rate == "auto" and not math.isfinite(info.largest_second_moment):
            raise ValueError(
                "learning_rate='auto' needs rows of a known scale; pass row_norm='unit', public "
                "rows, or a learning_rate."
            )

    # -- predicting and serving -------------------------------------------------------------

    def to_onnx(self, *, dtype: str = "float64") -> Any:
        """The fitted estimator as an ONNX model, from raw rows to predictions.

        Centring, whitening and scaling of the rows are part of the model. The input ``X`` has shape
        (n_samples, n_features). A classifier has the outputs ``label`` (n_samples,) and ``probabilities``
        (n_samples, n_classes), with the columns in the order of ``classes_``. A regressor has the output
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
        return to_onnx(self, dtype)

    def to_sklearn(self) -> Any:
        """The fitted estimator as a scikit-learn pipeline that needs no skmixdp.

        The pipeline consists of scikit-learn's transformers and a ``LogisticRegression`` or ``Ridge``, with
        fitted attributes set. Its methods ``predict``, ``predict_proba``, ``decision_function`` and ``score``
        agree with those of this estimator up to rounding. It takes dense rows.

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
        from ._exports.sklearn_model import to_sklearn  # it imports much of scikit-learn

        return to_sklearn(self)

    def _outputs(self, X: Any) -> Array:
        """Outputs (n, k) of the fitted head."""
        check_is_fitted(self)
        return head_outputs(self, X)
