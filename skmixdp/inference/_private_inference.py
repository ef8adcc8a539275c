"""Regression coefficients of private rows, with confidence intervals."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._engine import GaussianMechanism, Transaction
from .._fit.stages.columns import columns_share, noisy_columns
from .._fit.stages.labels import TARGET_RELEASES, noisy_scale, noisy_targets, scale_share, target_share
from .._fit.stages.mapping import unmapped
from .._fit.statistics import Learner, Learning
from .._fit.sums import noisy_sums
from .._rows.persons import PersonTable
from .._rows.table import (
    check_classes,
    check_counts,
    check_labels,
    check_private_rows,
    check_target,
    encode_labels,
    groups_of,
    labels_of,
)
from .._utils.models import names_of_features
from .._utils.process import own_state
from .._utils.validation import check, passed, shown, sources_of
from ..estimators._problem import collect_public
from ..estimators._row_mapping import DECLARED, scales_of
from ..preprocessing._leaks._enclosing import check_public_rows, warn_of_leaks
from ..privacy.units import units_of
from ._encoded import OF_RANGE, Encoded
from ._estimating import (
    ENOUGH,
    MOVED_DEVIATIONS,
    SPREADS,
    Design,
    Estimate,
    Regression,
    noise_floor,
    public_scales,
)
from ._generalized import Logistic, logistic_steps, poisson_steps, step_shares
from ._least_squares import least_squares_shares, least_squares_steps
from ._outcomes import exposures_of, weights_of
from ._result import INTERCEPT, InferenceResult, check_confidence, named

Array = NDArray[Any]

#: Minimum ratio of the curvature that balanced classes would have to the noise.
_CLEAR = 8.0

#: Mean count that is assumed where counts are cut at 1, to tell how many rows are too few.
_USUAL_COUNT = 0.25

#: A coefficient is not identified if more than this fraction of it is in directions that noise hides.
_MOSTLY_HIDDEN = 0.05

#: Nor if the bias of a hidden slope of 0.5 per spread of the columns is more than half of the coefficient's
#: standard error. With such a bias, intervals cover 0.92.
_USUAL_SLOPE = 1.0

#: Neither are coefficients of an output if rows lie more than this many spreads from the centre of a column
#: on average. Noise then hides the difference between intercept and slope.
_OFF_CENTER = 4.0


@own_state()
def private_inference(
    X: object,
    y: object,
    *,
    family: str = "logistic",
    exposure: object = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    classes: object = None,
    X_pub: object = None,
    y_pub: object = None,
    exposure_pub: object = None,
    sample_weight: object = None,
    sample_weight_pub: object = None,
    max_sample_weight: Any = "auto",
    groups: object = None,
    cov: str = "model",
    confidence: float = 0.95,
    encoder: object = None,
    reference: Mapping[str, str] | None = None,
    scale: Mapping[Any, tuple[float, float]] | None = None,
    target_scale: tuple[float, float] | None = None,
    neighboring: Any = "add_or_remove_one",
    ledger: object = None,
    random_state: object = None,
) -> InferenceResult:
    """Estimate regression coefficients of PRIVATE rows, with standard errors and confidence intervals.

    The intervals cover the coefficients that a regression without privacy estimates. They count both the
    sampling error and the noise. Coefficients refer to the columns' own units.

    Parameters
    ----------
    X : array-like, data frame, sparse matrix, Dask array or RowFiles of shape (n_samples, n_features)
        PRIVATE rows of numbers, or a table of mixed columns with an ``encoder``. If you encode categories
        yourself, leave out one of each column: all categories and the intercept together are collinear.
    y : array-like of shape (n_samples,) or None
        Classes, targets or counts of the rows. If None, the labels in the files of ``X`` are used.
    family : {"logistic", "gaussian", "poisson"}, default="logistic"
        ``"logistic"`` estimates log-odds of the second class; of more classes, those of each class against
        the first (multinomial). ``"gaussian"`` is least squares. ``"poisson"`` estimates the log of the rate
        of counts; with robust errors, counts may vary more than Poisson's (quasi-Poisson).
    exposure : array-like of shape (n_samples,) or None, default=None
        For ``family="poisson"``: the positive time or number at risk behind each count. PRIVATE. Rates are
        per unit of exposure. None is 1 for each row.
    epsilon, delta : float, default=1.0 and 1e-5
        The budget of all releases together. Choose delta well below 1/n.
    classes : array-like or None, default=None
        All classes, the first of which is the reference. If None, they are those of ``y_pub``, sorted;
        without public rows, they are required.
    X_pub, y_pub : array-like, or None
        Public rows. They are a known part of the same regression, so they must come from the same population.
        Thirty of them or more also tell centre and spread of the columns.
    exposure_pub : array-like of shape (n_pub,) or None, default=None
        Exposures of the public rows in the same units; required where both have exposures.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Non-negative weights of the private rows, such as those of a survey. They are PRIVATE, and only their
        ratios count. Errors are then always robust.
    sample_weight_pub : array-like of shape (n_pub,) or None, default=None
        Weights of the public rows in the same units; required where both have weights.
    max_sample_weight : float or "auto", default="auto"
        The ``sample_weight`` that counts as 1; larger ones count as 1, too. Declare it from prior knowledge.
        ``"auto"`` learns it from a noisy histogram of the weights, for 0.2 to 2% of the squared budget.
    groups : array-like of shape (n_samples,) or None, default=None
        Ids of the persons whose rows these are. The guarantee is then for all rows of one person. Each person
        counts once, by the mean of their rows, and errors are robust to what the rows of a person share.
    cov : {"model", "robust"}, default="model"
        ``"model"`` errors hold if the model is right. ``"robust"`` errors (Huber, White) also hold if it is
        not, and for targets whose errors differ in size. They spend 12% of the budget on one more release.
    confidence : float, default=0.95
        Coverage of the intervals.
    encoder : TableEncoder or None, default=None
        A fitted encoder of the rows. Coefficients of numbers are then in units of the table's cells, and
        those of dates are per day. One category of each column is the reference of the others.
    reference : dict of str to str or None, default=None
        ``{column: category}``: reference categories of columns of the encoder. That of other columns is the
        most frequent one of the public rows ``X_pub``, or without those the first one of the encoder.
    scale : dict of column: Typical(value, distance), or None, default=None
        Typical values of columns from prior knowledge, by name or position, as in
        :class:`~skmixdp.MixedDPLogisticRegression`: those of an encoder by the names of the table, in the
        units of its cells. Noisy histograms of the private rows tell those of the other columns.
    target_scale : (center, spread) or None, default=None
        The same for the targets of ``family="gaussian"``.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``. It is charged before anything is released.
    random_state : None, int or RandomState, default=None
        None is private. A seed makes the result reproducible and NOT private: a NotPrivateWarning and the
        report say so.

    Returns
    -------
    InferenceResult
        Coefficients, standard errors, intervals and p-values. Its ``privacy_`` is the report.

    Raises
    ------
    ValueError, TypeError
        For bad input, and for more columns than the rows and the budget can carry; the message says how many
        they can. No noise was drawn or budget charged by then.
    BudgetExceededError
        If the ledger does not allow the releases; nothing is released or charged.

    Notes
    -----
    *Guarantee*: the result is (epsilon, delta)-differentially private in the rows of ``X, y``, or in the
    persons of ``groups``. All releases are full-batch Gaussian releases that share one budget. A row x of d
    standardised columns and a constant has weight ``v = min(1, (d + 1) / |x|^2)``. It adds a score ``v r x``,
    whose length is at most ``sqrt(d + 1)`` times the bound of the residual r, a curvature of norm at most
    ``(d + 1) / 4`` (logistic) or ``d + 1`` (least squares), and 1 to histograms and counts.

    The weights depend on x alone. So they leave the coefficients where they are if the model is right, and
    lose some precision. If the model is wrong, the estimate is that of a regression with these weights.
    With a ``sample_weight`` w, all that a row adds is multiplied by ``min(1, w / w_max)``. The weight of a
    row may depend on that row alone.

    References
    ----------
    M. Avella-Medina, C. Bradshaw and P.-L. Loh (2023). Differentially private inference via noisy
    optimization. Annals of Statistics 51(5), 2067-2092.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_regression
    >>> from skmixdp.inference import private_inference
    >>> X, y, slopes = make_regression(20_000, 3, n_informative=3, noise=50.0, coef=True, random_state=0)
    >>> result = private_inference(X, y, family="gaussian", epsilon=1.0)
    >>> result.params.index.tolist()
    ['intercept', 'x0', 'x1', 'x2']
    >>> bool(np.all(np.abs(result.params.iloc[1:] - slopes) < 5 * result.bse.iloc[1:]))
    True
    """
    check("family", family, "logistic", "gaussian", "poisson")
    check("cov", cov, "model", "robust")
    check_confidence(confidence)
    transaction = Transaction.of_release(
        "private_inference",
        epsilon=epsilon,
        delta=delta,
        neighboring=neighboring,
        noise="float",
        random_state=random_state,
        ledger=ledger,
    )
    transaction.leaks = warn_of_leaks(X, public_rows=X_pub is not None, persons=groups is not None)
    logistic, poisson = family == "logistic", family == "poisson"
    holder: Any = BaseEstimator()
    outcomes, ids = labels_of(X, y), groups_of(X, groups)
    encoded = None
    if encoder is None:
        check("reference", reference, None, remedy="there is no encoder")
    else:
        encoded = Encoded.of(encoder, reference, X_pub)
        X, X_pub = encoded(X), None if X_pub is None else tuple(map(encoded, sources_of(X_pub)))
        y_pub = y_pub if isinstance(y_pub, tuple) or y_pub is None else (y_pub,)
    table = check_private_rows(holder, X)
    n_rows, n_features = table.shape
    column_names = names_of_features(holder)
    names = [f"x{j}" for j in range(n_features)] if column_names is None else [*map(str, column_names)]
    units = units_of(ids, n_rows, "float")
    check_outcomes = check_labels if logistic else check_counts if poisson else check_target
    check_public_rows(n_rows, X_pub)
    labels = check_outcomes(outcomes, "y", n_rows, "X")
    public = collect_public(X_pub, y_pub, column_names, n_features, check_outcomes)
    x_pub, labels_pub = (np.empty((0, n_features)), labels[:0]) if public is None else public
    target: tuple[str, ...] = ("0", "1")
    if logistic:
        class_labels = _classes(classes, None if public is None else labels_pub)
        places = np.argsort(class_labels)  # codes are places among sorted classes
        labels = places[encode_labels(labels, class_labels[places], "y", private=True)]
        if public is not None:
            labels_pub = places[encode_labels(labels_pub, class_labels[places], "y_pub", private=False)]
        target = tuple(str(label) for label in class_labels.tolist())
    else:
        check("classes", classes, None, remedy=f"family={family!r} has no classes")
    check("scale", scale, DECLARED, None)
    scales = scales_of(scale or {}, names) if encoded is None else encoded.scales_of(scale or {})
    if family != "gaussian":
        check("target_scale", target_scale, None, remedy=f"family={family!r} has no targets")
    known_target = None if target_scale is None else _declared_target(target_scale)
    weights, weights_pub = weights_of(sample_weight, sample_weight_pub, max_sample_weight, n_rows, len(x_pub))
    exposures, exposures_pub = exposures_of(exposure, exposure_pub, family, n_rows, len(x_pub))
    if len(x_pub) >= ENOUGH:
        scales = public_scales(x_pub) | scales
        if family == "gaussian" and known_target is None:
            known_target = public_scales(labels_pub[:, np.newaxis]).get(0)
    columns_of_labels = [(labels, labels_pub)]
    if poisson:
        columns_of_labels.append((exposures, exposures_pub))
    if weights is not None:
        columns_of_labels.append((weights, weights_pub))
    labels, labels_pub = map(np.column_stack, zip(*columns_of_labels, strict=True))
    if units.codes is not None:
        table = PersonTable(table, *units)
    robust = cov == "robust" or units.codes is not None or weights is not None
    n_units = units.n_units
    if encoded is not None:
        scales = encoded.ranges | scales
    unknown = np.array([place for place in range(n_features) if place not in scales], dtype=np.intp)
    declared_weight = None if max_sample_weight == "auto" else float(max_sample_weight)
    learns_target = family == "gaussian" and known_target is None
    learns_weights = weights is not None and declared_weight is None
    multiplier = transaction.budget.whole.noise_multiplier
    divided = partial(_shares, multiplier, n_units, target=learns_target, weights=learns_weights)
    shares = divided(len(unknown))

    def of_steps(n_columns: int) -> float:
        """The noise multiplier of all steps with that many columns."""
        n_unknown = math.ceil(n_columns * len(unknown) / n_features)
        return multiplier / math.sqrt(divided(n_unknown)["steps"])

    _refuse_what_noise_hides(of_steps, n_units + len(x_pub), n_features, family, len(target), robust)
    facts = (
        f"the numbers of {units.plural} and of features, and the features' names",
        passed(
            *("shapes", "finiteness", "labels" if logistic else "targets"),
            *(("exposures",) if exposure is not None else ()),
            *(("weights",) if weights is not None else ()),
            *(("ids of persons",) if units.codes is not None else ()),
        ),
        *(("the classes",) if logistic else ()),
        *(() if encoded is None else ("the number and the names of the columns before preprocessing",)),
        *(("centre and spread of columns that were declared or are public",) if scales else ()),
    )

    def releases(
        learner: Learner, *, multiplier: float
    ) -> Learning[tuple[Design, tuple[float, float], Estimate]]:
        center: Array = np.zeros(n_features)
        spread: Array = np.zeros(n_features)
        share = shares["steps"]
        if shares["columns"]:
            part = multiplier / math.sqrt(shares["columns"])
            # In a part of all rows, few rows that differ from the others would be lost.
            columns = yield from noisy_columns(learner, n_features, part, wanted=unknown, thins=False)
            center, spread = columns.center, np.where(columns.unclear, 0.0, columns.spread)
            share -= shares["columns"] * (columns.spent - 1)
            if encoded is not None:  # noise hides no column whose range is declared
                for j in encoded.bounded:
                    if not spread[j] > 0:
                        center[j], spread[j] = OF_RANGE
        for j, pair in scales.items():
            center[j], spread[j] = pair
        middle, width = (0.0, 1.0) if known_target is None else known_target
        if shares["target"]:
            part = multiplier * math.sqrt(TARGET_RELEASES / shares["target"])
            mechanism = GaussianMechanism(part, TARGET_RELEASES, learner.noise)
            noisy_center, noisy_width = yield from noisy_targets(learner, 1, mechanism, n_features)
            if noisy_width[0] > 0:
                middle, width = float(noisy_center[0]), float(noisy_width[0])
        largest = declared_weight
        if shares["weights"]:
            largest = yield from noisy_scale(learner, multiplier / math.sqrt(shares["weights"]), n_features)
        shown_columns = np.flatnonzero(spread > 0)
        design = Design(shown_columns, center[shown_columns], spread[shown_columns], largest)
        public_rows = design.rows(unmapped(n_features)(x_pub, np.float64), labels_pub)
        of_all = multiplier / math.sqrt(share)
        regression = Regression(learner, n_features, of_all, design, public_rows)
        if logistic:
            steps = logistic_steps(regression, len(target), robust=robust)
        elif poisson:
            steps = poisson_steps(regression, robust=robust)
        else:
            steps = least_squares_steps(regression, (middle, width), robust=robust)
        estimate = yield from steps
        return design, (middle, width), estimate

    (design, scale_of_target, estimate), report = noisy_sums(
        table, unmapped(n_features), labels, releases, transaction, facts
    )
    if encoded is not None:
        design = encoded.in_cells(design)
    values, to_units = _in_units(design, estimate, len(target) - 1, scale_of_target)
    index: pd.Index = pd.Index([INTERCEPT, *(names[j] for j in design.columns)])
    if len(target) > 2:
        index = pd.MultiIndex.from_product([target[1:], index], names=["class", "term"])
    covariance = to_units @ (estimate.sampling + estimate.noise) @ to_units.T
    off = design.columns[(np.abs(estimate.centers[:, 1:]) > _OFF_CENTER).any(axis=0)]
    # In units, since the constant depends on all columns there.
    in_hidden = ((to_units @ estimate.hidden) ** 2).sum(axis=1)
    hidden = in_hidden / (to_units**2).sum(axis=1) > _MOSTLY_HIDDEN
    # The intercept has a long row: a small part of it may be much of its error.
    hidden |= _USUAL_SLOPE**2 * in_hidden > np.diag(covariance)
    by_noise = np.sqrt(np.diag(to_units @ estimate.moved_noise @ to_units.T))
    # Longer steps than the standard error, and than noise explains, have not arrived.
    limit = np.maximum(np.sqrt(np.diag(covariance)), MOVED_DEVIATIONS * by_noise)
    moving = (np.abs(to_units @ estimate.moved) > limit) | estimate.fading
    endless = math.isinf(estimate.cut_off)
    left_out = tuple(name for j, name in enumerate(names) if j not in design.columns)
    all_unclear = estimate.separated or endless or len(off) > 0 or len(left_out) > 0
    notes = _notes(
        [names[j] for j in off],
        index[hidden & ~moving],
        index[moving],
        separated=estimate.separated,
        endless=endless,
    )
    return InferenceResult(
        params=pd.Series(values, index),
        covariance=covariance,
        sampling_covariance=to_units @ estimate.sampling @ to_units.T,
        identified=pd.Series(~(hidden | moving | all_unclear), index),
        hidden_columns=left_out,
        family=family,
        cov_type="robust" if robust else "model",
        classes=target if logistic else (),
        n_private=n_units,
        n_public=len(x_pub),
        unit=units.unit,
        confidence=confidence,
        references={} if encoded is None else encoded.references,
        notes=notes,
        privacy_=report,
        spreads=pd.Series(design.spread, [names[j] for j in design.columns]),
        encoded=encoded,
    )


def _classes(declared: object, y_pub: Array | None) -> Array:
    """The classes in the order declared, or sorted ones of public labels."""
    if declared is not None:
        check_classes(declared)
        labels = np.array(list(dict.fromkeys(np.asarray(declared).tolist())), np.asarray(declared).dtype)
    elif y_pub is not None:
        labels = np.unique(y_pub)
    else:
        raise ValueError("classes=None needs public rows; pass classes=[...], or X_pub and y_pub.")
    if len(labels) < 2:
        raise ValueError(f"classes={shown(labels.tolist())} holds one class; list all classes.")
    return labels


def _declared_target(value: Any) -> tuple[float, float]:
    """Declared centre and spread of the targets."""
    try:
        center, spread = (float(each) for each in value)
    except (TypeError, ValueError):
        center = spread = math.nan
    if not (abs(center) <= SPREADS[1] and SPREADS[0] <= spread <= SPREADS[1]):
        raise ValueError(
            f"target_scale={shown(value)} must be two numbers (center, spread), up to 9e18 and with a spread "
            "of at least 1e-15; choose them from prior knowledge, never from the private rows."
        )
    return center, spread


def _shares(
    multiplier: float, n_units: int, n_unknown: int, *, target: bool, weights: bool
) -> dict[str, float]:
    """Shares of the squared budget; columns and targets whose scale noise would hide are refused."""
    mu = 1 / multiplier
    shares = {
        "columns": columns_share(mu, n_units, n_unknown),
        "target": target_share(mu, n_units, 1) if target else 0.0,
        "weights": scale_share(mu, n_units) if weights else 0.0,
    }
    for name, wanted, remedy in (
        ("columns", n_unknown, "scale={column: Typical(value, distance)}"),
        ("target", target, "target_scale=(center, spread)"),
    ):
        if wanted and not shares[name]:
            raise ValueError(
                f"the budget and {n_units} rows are too few to learn the spread of the {name}; pass "
                f"{remedy}, more rows, a larger epsilon, or {ENOUGH} public rows or more."
            )
    return {**shares, "steps": 1 - sum(shares.values())}


def _refuse_what_noise_hides(
    multiplier: Callable[[int], float],
    n_rows: int,
    n_features: int,
    family: str,
    n_classes: int,
    robust: bool,
) -> None:
    """Refuse columns whose effects noise would hide.

    ``multiplier`` is that of the steps by the number of columns; ``n_classes`` counts for log-odds.
    """

    def needed(d: int) -> float:
        """Number of rows with d columns for which the curvature exceeds the noise clearly."""
        share, sensitivity, size, usual = least_squares_shares(robust)[0], d + 1.0, d + 1, 1.0
        if family != "gaussian":
            share, usual = float(step_shares(family, robust)[0][:, 1].max()), _USUAL_COUNT
        if family == "logistic":
            model = Logistic(n_classes)
            sensitivity, size = model.curvature_bound * (d + 1), model.n_outputs * (d + 1)
            usual = 1 / n_classes - 1 / n_classes**2 if n_classes == 2 else 1 / n_classes**2
        return _CLEAR * noise_floor(multiplier(d) * sensitivity / math.sqrt(share), size) / usual

    if n_rows >= needed(n_features):
        return
    most = max((d for d in range(1, n_features) if n_rows >= needed(d)), default=0)
    fewer = f"use at most {most} column(s), " if most else "pass "
    raise ValueError(
        f"X has {n_features} columns, whose effects the noise would hide with {n_rows} rows and this budget; "
        f"{fewer}at least {math.ceil(needed(n_features))} rows or a larger epsilon."
    )


def _in_units(
    design: Design, estimate: Estimate, n_outputs: int, target: tuple[float, float]
) -> tuple[Array, Array]:
    """Coefficients in the units of columns and targets, and the matrix that converts covariances."""
    of_output = np.eye(design.width)
    of_output[1:, 1:] /= design.spread[:, np.newaxis]
    of_output[0, 1:] = -design.center / design.spread
    matrix = np.kron(np.eye(n_outputs), of_output * target[1])
    values = matrix @ estimate.values
    values[:: design.width] += target[0]
    return values, matrix


def _notes(
    off: list[str], hidden: pd.Index, moving: pd.Index, *, separated: bool, endless: bool
) -> tuple[str, ...]:
    """Notes on the numbers, to read before they are used."""
    notes = {
        "Not identified (collinear columns, or hidden by noise): "
        f"{', '.join(map(named, hidden))}. Where noise hides a column, "
        "the other coefficients are those of a regression without it.": len(hidden),
        "Not identified, since the last step still moved them by more than their error: "
        f"{', '.join(map(named, moving))}. "
        "Effects may be very strong, or without end, as where a group has no event.": len(moving),
        f"Rows lie so far from the centre of {', '.join(off)} that noise hides effects; declare another "
        "centre by scale=, or more rows.": len(off),
        "The columns nearly separate the classes, so their coefficients are not identified. Leave out "
        "the column that does.": separated,
        "No interval: residuals fall so slowly in size that noise hides how much the largest add. Take "
        "logarithms of y, cut it at a bound from prior knowledge, or use more rows or budget.": endless,
    }
    return tuple(note for note, applies in notes.items() if applies)
