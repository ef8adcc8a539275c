"""Evaluation of a model on private rows: predictions, cells, and metrics."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..._engine.transaction import Transaction
from ..._fit.predictions import in_memory, predicted
from ..._fit.statistics import sensitivity_of
from ..._fit.sums import noisy_deviances, noisy_histograms
from ..._rows.table import (
    check_counts,
    check_exposure,
    check_indicator,
    check_labels,
    check_target,
    encode_labels,
    is_indicator,
)
from ..._utils.models import classes_of, has_several_labels, last_step, predicts_rates
from ..._utils.process import own_state, warn
from ..._utils.validation import Number, check, shown, whole_from
from ...preprocessing._leaks._enclosing import warn_of_leaks
from ...privacy import PrivacyReport
from ...privacy.units import Units
from .cells import NoisyCells
from .groups import Parts
from .regression_metrics import FINENESS, CountEvaluation, ResidualEvaluation
from .scores import LARGEST_LOGIT, OneVsRestEvaluation, ScoreEvaluation

Array = NDArray[Any]

#: The cells (n_rows, h) of rows in h histograms, how many, facts about them, and what makes the evaluation.
_Layout = tuple[NDArray[np.intp], int, tuple[str, ...], Callable[[NoisyCells, PrivacyReport], Any]]

#: Fewest cells of ``"auto"``.
_FEWEST_CELLS = 16
#: Most cells of ``"auto"``.
_MOST_CELLS = 256

#: Largest error, so that squares do not overflow.
_LENGTH = Number("a positive finite number up to 1e100", low=0, high=1e100, closed="right")


def private_evaluation(
    estimator: BaseEstimator,
    X: object,
    y: object = None,
    *,
    epsilon: float,
    delta: float = 1e-5,
    exposure: object = None,
    groups: object = None,
    by: object = None,
    by_values: object = None,
    layout: str = "auto",
    n_bins: int | str = "auto",
    target_bounds: object = None,
    residual_bound: float | None = None,
    neighboring: Any = "add_or_remove_one",
    noise: Any = "float",
    ledger: object = None,
    random_state: object = None,
) -> Any:
    """Evaluate a fitted model on PRIVATE rows by one noisy histogram.

    Each row adds 1 to the cell of its score and its label. From the noisy counts follow the ROC curve and its
    area, precision and recall, log-loss, calibration error, F1 and thresholds, all with intervals. For a
    regression, they are MAE, R2 and coverage. All of these cost one release.

    The rows should not have trained the model. See :doc:`/evaluation` for what it means if they did.

    Parameters
    ----------
    estimator : fitted classifier or regressor
        Any model that predicts each row by itself: one of this library, a Pipeline, or a model fitted on
        public rows. A classifier needs ``predict_proba``.
    X : array-like of shape (n_samples, n_features)
        PRIVATE rows, in whatever form the estimator predicts for.
    y : array-like of shape (n_samples,) or (n_samples, k), or None
        Their labels or targets. A table of 0 and 1 holds k labels for each row. If None, the labels in the
        files of ``X`` are used.
    epsilon : float
        Privacy budget of the release, in addition to that of the fit.
    delta : float, default=1e-5
        The delta of the guarantee. Choose it well below 1/n.
    exposure : array-like of shape (n_samples,) or None, default=None
        For counts: the positive time or number at risk behind each count. PRIVATE. The model predicts counts
        for an exposure of 1. None is 1 for each row.
    groups : array-like of shape (n_samples,) or None, default=None
        Ids of the persons whose rows these are. The guarantee is then for all rows of one person, who adds to
        each cell their share of rows in it. All metrics are means over persons.
    by : array-like of shape (n_samples,), str, list of two str, or None, default=None
        Evaluate each group of rows by itself: the group of each row, or the name of a column of ``X``. It is
        PRIVATE. One histogram of group, score and label serves all groups for the same budget. The names of
        two columns make groups of the pairs of their values.
    by_values : list or None, default=None
        The groups, which are public; for two columns a list of two lists. Rows of other groups are evaluated
        together as ``"other"``.
    layout : {"auto", "top", "one_vs_rest", "residuals", "deviance"}, default="auto"
        For two classes, "auto" is a single histogram by the probability of the second. For more, "top" takes
        the probability of the predicted class by whether it is right, and "one_vs_rest" has a histogram for
        each class. "auto" is then "top", and for several labels "one_vs_rest". For a regression, "residuals"
        has a histogram of residuals and one of targets, and "deviance" Poisson deviances of counts. "auto" is
        "deviance" for :class:`~skmixdp.MixedDPPoissonRegressor`.
    n_bins : int or "auto", default="auto"
        Number of cells for scores, residuals or targets. ``"auto"`` is 16 to 256, by the number of rows, or
        persons, and the noise.
    target_bounds : (low, high) or None, default=None
        For a regression: bounds of the targets from prior knowledge, to which they are cut, up to 1e100.
    residual_bound : float or None, default=None
        Bound of the absolute residuals, to which they are cut; None is half of ``high - low``.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` adds discrete Gaussian noise to exact counts, on a grid that is much finer than one
        row. There are no low-order bits to attack. It needs ``skmixdp[discrete]``.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``. It is charged before anything is released.
    random_state : None, int or RandomState, default=None
        None is private. A seed makes the release reproducible and NOT private: a NotPrivateWarning and the
        report say so.

    Returns
    -------
    ScoreEvaluation, OneVsRestEvaluation, ResidualEvaluation, CountEvaluation or GroupedEvaluation
        The metrics; with ``by``, those of each group. Its ``privacy`` is the report, and ``plot()`` draws it.

    Raises
    ------
    ValueError, TypeError
        For bad input, before any noise is drawn or budget charged.
    BudgetExceededError
        If the ledger does not allow the release; nothing is released or charged.

    Notes
    -----
    *Guarantee*: the result is (epsilon, delta)-differentially private in the rows of ``X, y``, or in the
    persons of ``groups``, given the model. It is one Gaussian release. Its L2 sensitivity is 1 for two
    classes and for "top", ``sqrt(k)`` for k classes or labels one by one, and ``sqrt(2)`` for a regression.
    For counts, a fifth of the squared budget goes to histograms of counts and exposures.
    Means over the rows of a person are no longer than what one row adds. Cells are public: scores are cut to
    log-odds between -8 and 8, and residuals and targets to their bounds. A score that is not a number counts
    as the lowest.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.model_selection import private_evaluation
    >>> X, y = make_classification(6000, 10, n_informative=5, random_state=0)
    >>> clf = MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X[:3000], y[:3000])
    >>> evaluation = private_evaluation(clf, X[3000:], y[3000:], epsilon=1.0)
    >>> area = evaluation.roc_auc()
    >>> bool(area.low < area.value < area.high and area.value > 0.7)
    True
    """
    with own_state():
        transaction = Transaction.of_release(
            "private_evaluation",
            epsilon=epsilon,
            delta=delta,
            neighboring=neighboring,
            noise=noise,
            random_state=random_state,
            ledger=ledger,
        )
        transaction.leaks = warn_of_leaks(None, public_rows=False, persons=groups is not None)
        check("layout", layout, "auto", "top", "one_vs_rest", "residuals", "deviance")
        check("n_bins", n_bins, "auto", whole_from(4))
        check_is_fitted(estimator)
        named = isinstance(by, (str, list, tuple))
        parts = Parts.of(in_memory(X) if named else X, by, by_values)
        of_counts = layout == "deviance" or (layout == "auto" and predicts_rates(last_step(estimator)))
        if not of_counts:
            check("exposure", exposure, None, remedy="it is for counts and layout='deviance'")
        bounds = [("target_bounds", target_bounds, None), ("residual_bound", residual_bound, None)]
        cells: Callable[..., _Layout]
        if is_regressor(estimator):
            check("layout", layout, "auto", "residuals", "deviance", remedy="the model is a regression")
            if of_counts:
                for name, value, needed in (*bounds, ("n_bins", n_bins, "auto")):
                    remedy = "deviances have cells of their own; or pass layout='residuals'"
                    check(name, value, needed, remedy=remedy)
            else:
                low, high = _check_bounds(target_bounds)
                bound = (high - low) / 2 if residual_bound is None else residual_bound
                check("residual_bound", bound, _LENGTH)
                cells = partial(_residuals, low, high, bound)
            method, answers, model = "predict", "counts" if of_counts else "targets", "and the model"
        else:
            if not is_classifier(estimator) or not hasattr(estimator, "predict_proba"):
                raise TypeError(
                    f"estimator={shown(estimator)} must be a fitted regressor, or a classifier with "
                    "predict_proba."
                )
            check("layout", layout, "auto", "top", "one_vs_rest", remedy="the model is a classifier")
            for name, value, needed in bounds:
                check(name, value, needed, remedy="a classifier has no residuals")
            # That of this library or of scikit-learn.
            if "ThresholdClassifier" in type(last_step(estimator)).__name__:
                warn(
                    "the model has a threshold of its own, and the summary is at 0.5; pass the threshold to "
                    "at(...)."
                )
            cells = partial(_scores, estimator, layout)
            method, answers, model = "predict_proba", "labels", "the model and its classes"
        outputs, y, units = predicted(estimator, method, X, y, groups, noise)
        if method == "predict" and outputs.size != len(outputs):
            raise ValueError(
                f"predict gives an array of shape {outputs.shape}; evaluate one target at a time."
            )
        public = (f"the number of {units.plural}, {model}", _checks_passed(answers, units))
        if of_counts:
            counts = check_counts(y, "y", len(outputs), "X")
            exposures = check_exposure(exposure, "exposure", len(outputs), "X")
            codes = np.broadcast_to(parts.places, (len(counts), 1))
            values = np.column_stack([counts, exposures, exposures * outputs.ravel(), codes])
            terms = exposure is not None, parts.number, transaction, public + parts.facts, units
            sums, scale, rate, report = noisy_deviances(values, *terms)
            return parts.split(sums, scale, report, units, partial(CountEvaluation, rate=rate))
        number = partial(_number_of_bins, n_bins, units.n_units // parts.number, transaction)
        bins, n_cells, declared, evaluation = cells(outputs, y, number)
        bins, n_cells = bins + n_cells * parts.places, n_cells * parts.number
        noisy = noisy_histograms(bins, n_cells, transaction, public + declared + parts.facts, units)
        return parts.split(*noisy, units, evaluation)


def _scores(
    estimator: BaseEstimator, layout: str, P: Array, y: Any, number_of: Callable[[int], int]
) -> _Layout:
    """The cells of a classifier's probabilities and answers."""
    several = is_indicator(y)
    if _has_several_labels(estimator) and not several:
        raise ValueError(
            "the model was fitted to several labels per row, and y is no table of labels; pass one of 0 and "
            "1, with a column for each label."
        )
    if P.ndim != 2 or P.shape[1] < 2:
        raise ValueError(
            f"predict_proba gives an array of shape {P.shape}; evaluate a classifier that gives one column "
            "for each of two or more classes or labels."
        )
    n_rows, k = P.shape
    if several:
        if layout == "top":
            raise ValueError("layout='top' needs one label per row, and y has several; pass 'one_vs_rest'.")
        names = np.asarray(classes_of(last_step(estimator)), dtype=object)
        table = check_indicator(y, "y", n_rows, "X", names if names.shape == (k,) else None)
        if table.shape[1] != k:
            raise ValueError(
                f"y has shape {table.shape} and predict_proba gives {P.shape}; pass one row of labels for "
                "each row of X, with as many columns."
            )
        answers, classes = table == 1, list(range(k))
    else:
        classes = np.asarray(estimator.classes_).tolist()
        labels = check_labels(y, "y", n_rows, "X")
        answers = encode_labels(labels, np.asarray(estimator.classes_), "y", private=True)
        if layout == "auto" and k > 2:
            layout = "top"
    low = -LARGEST_LOGIT
    evaluation: Callable[..., Any] = ScoreEvaluation
    if several or layout == "one_vs_rest":
        scores, places = P, answers if several else answers[:, np.newaxis] == np.arange(k)
        evaluation = partial(OneVsRestEvaluation, classes=classes, exclusive=not several)
    elif layout == "top":
        low = -math.log(k - 1) if k > 2 else 0.0  # the largest of k probabilities is at least 1 / k
        best = P.argmax(axis=1)
        scores, places = np.take_along_axis(P, best[:, np.newaxis], 1), (best == answers)[:, np.newaxis]
        evaluation = partial(ScoreEvaluation, question="correct")
    else:
        scores, places = P[:, 1:], answers[:, np.newaxis]
    number = number_of(scores.shape[1])
    bins = _bins_of(logit(scores), low, LARGEST_LOGIT, number) + number * places.astype(np.intp)
    return bins, 2 * number, (), partial(evaluation, logits=np.linspace(low, LARGEST_LOGIT, number + 1))


def _residuals(
    low: float, high: float, bound: float, predictions: Array, y: object, number_of: Callable[[int], int]
) -> _Layout:
    """The cells of residuals and targets."""
    targets = check_target(y, "y", len(predictions), "X")
    number = 2 * (number_of(2) // 2)
    residuals, ends = (np.arcsinh((targets - predictions.ravel()) / bound * FINENESS), np.arcsinh(FINENESS))
    bins = np.column_stack([_bins_of(residuals, -ends, ends, number), _bins_of(targets, low, high, number)])
    evaluation = partial(
        ResidualEvaluation,
        residual_edges=bound * np.sinh(np.linspace(-ends, ends, number + 1)) / FINENESS,
        target_edges=np.linspace(low, high, number + 1),
    )
    return bins, number, ("the bounds of targets and residuals (declared)",), evaluation


def _number_of_bins(n_bins: int | str, n_rows: int, transaction: Transaction, n_histograms: int) -> int:
    """Number of cells for a score; ``"auto"`` is a power of two that public facts determine."""
    if not isinstance(n_bins, str):
        return int(n_bins)
    # Noise in a sum over all cells grows as the root of their number, and the error by their width falls as
    # its square. So the number grows as the power 2/5 of the rows over the noise. Trials gave the factor.
    signal = n_rows / (transaction.budget.whole.noise_multiplier * sensitivity_of(n_histograms))
    return min(max(1 << max(0, round(math.log2(2.2 * signal**0.4))), _FEWEST_CELLS), _MOST_CELLS)


def _bins_of(values: Array, low: float, high: float, n_bins: int) -> NDArray[np.intp]:
    """Cells of equal width in a range; end cells take other values, and the first one takes NaN."""
    # Unlike np.clip, they replace NaN.
    places = np.fmin(np.fmax((values - low) / (high - low) * n_bins, 0), n_bins - 1)
    return np.asarray(places.astype(np.intp))


def _checks_passed(labels: str, units: Units) -> str:
    """Text for the report: the checks that were treated as public."""
    checked = f"rows and {labels}" if units.codes is None else f"rows, {labels} and ids of persons"
    return (
        f"the type of X if it is an array (declared), that {checked} could be read and passed validation, "
        "and the model predicted for them"
    )


def _has_several_labels(model: object) -> bool:
    """Whether a model, its last step or the part that predicts has several labels per row."""
    model = last_step(model)
    inner = vars(model).get("best_estimator_", vars(model).get("estimator_"))
    return has_several_labels(model) or (inner is not None and _has_several_labels(inner))


def _check_bounds(bounds: Any) -> tuple[float, float]:
    """Low and high bound of the targets, checked."""
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (max(-low, high) <= _LENGTH.high and low < high):
        raise ValueError(
            f"target_bounds={shown(bounds)} must be two finite numbers (low, high) up to 1e100 with low < "
            "high; choose them from prior knowledge, never from the private targets."
        )
    return low, high
