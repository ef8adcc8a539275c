"""Calibration of the trained head: its temperature, the mean of its predictions, and its residuals."""

import math
from dataclasses import replace
from functools import partial, reduce

import numpy as np
from scipy.linalg import eigh
from scipy.special import expit, logit, softmax
from sklearn.isotonic import isotonic_regression

from ..._engine import Procedure
from ..._linear.losses import Loss
from ..._rows.source import BinCounts, Block, Contribution
from ...components.clipping import clipped
from ...components.protocols import FloatArray, PrivateQuery, ReleasedArray, Rounds
from ..stage import RARE, Fit, Price, Stage
from ..statistics import Worth, noise_threshold, sensitivity_of, share_for, signal_part, windows_of
from .training import BINS, length_at, places_of

#: Base-2 logarithms of the factors of the outputs that are compared.
_LOGARITHMS = np.arange(-4.0, 4.0)

#: Noise in (mean confidence - accuracy).
_WORTH_OF_TEMPERATURE = Worth(0.01, 0.2, (0.002, 0.03))

#: Prior mean of log2(scale): noisy heads are usually overconfident.
_USUAL_SCALE = -0.75
#: Heads are more confident on the rows that trained them. Noise hides this at small budgets. With a budget
#: above this mu, the factor is pulled to 1.
_CLEAR_MU = 3.0
#: Doubling or halving the factor then costs up to this number of rows.
_OWN_ROWS = 20.0

#: Of the budget of a rare class, the part for the pivot: the logit about which outputs are scaled.
_OF_PIVOT = 0.2
#: Distance of the pivot from the logit of the class share: the largest, the usual one, and its spread.
_FARTHEST, _USUAL_DISTANCE, _SPREAD = 4.0, 1.0, 1.0
#: The distance from the pivot at which a row counts fully.
_FULL = 1.5
#: Prior standard deviation of the log of this ratio: summed probabilities of a rare class, per row of it.
_USUAL_ERROR_OF_RARE = 0.5
#: Smallest such ratio. The largest is the inverse of this.
_LEAST_OF_RARE = 0.2


class Temperature(Stage):
    """Scales outputs so that confidence is accuracy.

    A row adds the probability of its likeliest class, minus 1 if that class is its own, for several scales of
    the outputs, or the mean of that over its labels. The sum rises with the scale, through 0 where it is
    calibrated.

    **A rare class** of two is the likeliest of few rows. So the noisy sum of its probability p first moves
    the intercept. Then outputs are scaled about the mean logit of rows weighted by p, which hardly changes
    the mean of p: a row adds p less whether it is of the class, times its distance from this logit.

    *Guarantee*: one release of m sums. A row changes each of them by at most 1, so the sensitivity is
    ``sqrt(m)``. For a rare class, one release of two sums comes before it, of sensitivity ``sqrt(2)``.

    Source: Guo, Pleiss, Sun and Weinberger 2017, "On calibration of modern neural networks", section 4.2.
    """

    name = "temperature"
    limits = _WORTH_OF_TEMPERATURE.limits
    needs = ("probabilities", "default", "divides after")

    def price(self, fit: Fit) -> Price | None:
        return temperature_share(fit.budget.mu, fit.data.n_rows, fit.labels.rarest) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        assert fit.head is not None and fit.plan is not None
        scaling = partial(at_temperature, fit.head.W, has_classes=fit.data.loss.has_classes, mu=fit.budget.mu)
        if fit.labels.rarest < RARE:
            assert fit.labels.logits is not None and fit.mapping.row_map.intercept_value is not None
            scaling = partial(
                at_temperature_of_rare,
                fit.head.W,
                mu=fit.budget.mu,
                logit=float(fit.labels.logits[0]),
                n_rare=fit.plan.info.n_effective * fit.labels.rarest,
                constant=fit.mapping.row_map.intercept_value,
            )
        W = yield from fit.correct(scaling, price, fit.head.W)
        return fit.spent(self, price, head=replace(fit.head, W=W))


def temperature_share(mu: float, n_rows: int, rarest: float = 0.5) -> float:
    """Share of mu squared for the temperature; 0 if noise would hide it, by public facts.

    It grows where the share of one of two classes is small, since few rows then tell the scale.
    """
    moved = math.sqrt(len(_LOGARITHMS))
    usual = share_for(mu, n_rows, moved, _WORTH_OF_TEMPERATURE)
    telling = max(round(4 * rarest * (1 - rarest) * n_rows), 1)
    share = share_for(mu, telling, moved, _WORTH_OF_TEMPERATURE) or _WORTH_OF_TEMPERATURE.limits[1]
    return share if usual else 0.0


def at_temperature(W: FloatArray, multiplier: float, *, has_classes: bool, mu: float) -> Rounds:
    """The head (k, d_in) with the scale at which the noisy sums are 0.

    More noise pulls it to the usual scale, and with the whole budget ``mu``, own rows pull it to 1.
    """
    scales = 2.0**_LOGARITHMS
    measure = _overconfidence if has_classes else _overconfidence_in_labels
    stated = ReleasedArray(sensitivity_of(len(scales)))
    (sums,) = yield PrivateQuery(W, partial(measure, scales=scales), (stated,))
    return W * _scale(sums, multiplier, mu)


def _scale(sums: FloatArray, multiplier: float, mu: float) -> float:
    """The scale at which noisy sums, which rise with it, are 0."""
    own_rows = _OWN_ROWS * max(0.0, 1 - _CLEAR_MU / mu)
    # For accurate heads the sums change little with the scale, and noise alone would choose an extreme one.
    prior = multiplier * sensitivity_of(len(sums)) * (_LOGARITHMS - _USUAL_SCALE) + own_rows * _LOGARITHMS
    rising = isotonic_regression(sums + prior)
    return math.exp2(float(np.interp(0.0, rising, _LOGARITHMS)))


def at_temperature_of_rare(
    W: FloatArray, multiplier: float, *, mu: float, logit: float, n_rare: float, constant: float
) -> Rounds:
    """The head (1, d_in) of two classes, one of them rare, with outputs scaled about a noisy logit.

    ``logit`` is that of class 1, and ``n_rare`` the rows of the rare class, both as released; ``constant`` is
    that of the last column.
    """
    scales, sign = 2.0**_LOGARITHMS, -1.0 if logit > 0 else 1.0  # the sign of logits of the rare class
    weights = partial(_weights, logit=logit, sign=sign)
    ((total, away),) = yield PrivateQuery(W, weights, (ReleasedArray(sensitivity_of(2), _OF_PIVOT),))
    error = multiplier * sensitivity_of(2) / (math.sqrt(_OF_PIVOT) * n_rare)
    total = float(np.clip(total, _LEAST_OF_RARE * n_rare, n_rare / _LEAST_OF_RARE))
    move = float(signal_part(_USUAL_ERROR_OF_RARE, error)) * math.log(n_rare / total)
    seen = move + _FARTHEST * float(np.clip(away / total, 0.0, 1.0))
    distance = _USUAL_DISTANCE + float(signal_part(_SPREAD, _FARTHEST * error)) * (seen - _USUAL_DISTANCE)
    pivot = logit + sign * distance
    W = np.array(W)
    W[:, -1] += sign * move / constant
    stated = ReleasedArray(sensitivity_of(len(scales)), 1 - _OF_PIVOT)
    (sums,) = yield PrivateQuery(W, partial(_excess, scales=scales, pivot=pivot), (stated,))
    scale = _scale(sums, multiplier / math.sqrt(1 - _OF_PIVOT), mu)
    W *= scale
    W[:, -1] += (1 - scale) * pivot / constant
    return W


def _weights(Z: FloatArray, block: Block, logit: float, sign: float) -> Contribution:
    """Probabilities of the rare class (rows, 2), and the same times the distance of logits from the share."""
    Z = sign * np.asarray(Z, np.float64)
    p = expit(Z)
    away = np.clip((Z - sign * logit) / _FARTHEST, -1.0, 1.0)
    return None, np.nan_to_num(np.hstack([p, p * away]), copy=False)


def _excess(Z: FloatArray, block: Block, scales: FloatArray, pivot: float) -> Contribution:
    """Probabilities of class 1 at each scale, less whether it is, times distances from a pivot, (rows, m)."""
    away = np.asarray(Z, np.float64) - pivot
    over = expit(pivot + scales * away) - block.classes[:, np.newaxis]
    return None, np.nan_to_num(over * np.clip(away / _FULL, -1.0, 1.0), copy=False)


def _overconfidence(Z: FloatArray, block: Block, scales: FloatArray) -> Contribution:
    """Confidence in the likeliest class at each scale, minus 1 if it is the class of the row, (rows, m)."""
    own = block.classes
    # Class by class, so that work on few classes is vectorised over rows.
    logits = np.array(np.asarray(Z).T, order="C")
    if len(logits) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits])
    logits -= logits.max(axis=0)
    correct = logits[own, np.arange(len(own))] == 0
    powers = np.exp(logits * logits.dtype.type(scales[0]))
    over = np.empty((len(scales), len(own)))
    for confidence in over:
        # Classes are added one by one, so that the order is the same for any number of rows. A confidence is
        # at most 1, since the largest power is 1.
        np.divide(1, reduce(np.add, powers), out=confidence)
        np.square(powers, out=powers)  # the powers at twice the scale
    over -= correct
    return None, np.nan_to_num(over, copy=False).T


def _overconfidence_in_labels(Z: FloatArray, block: Block, scales: FloatArray) -> Contribution:
    """Mean over the labels (rows, k) of the confidence in the likelier value, minus 1 if it is right."""
    Z = np.asarray(Z)
    n_labels = Z.shape[1]
    right = (Z > 0) == (np.asarray(block.y)[:, :n_labels] == 1)
    # Labels are added one by one, so that the order is the same for any number of rows. Means are at most 1,
    # up to rounding.
    far, correct = np.abs(Z, dtype=np.float64).T, reduce(np.add, right.T.astype(np.float64))
    over = [(reduce(np.add, expit(scale * far)) - correct) / n_labels for scale in scales.tolist()]
    return None, np.nan_to_num(np.stack(over, axis=1), copy=False)


#: Noise in the mean prediction of a class or label.
_WORTH_OF_MEAN = Worth(0.0002, 0.02, (0.002, 0.02))
#: Prior standard deviation of (mean prediction - share q), as a fraction of q: clipped gradients of a
#: rare class make its predictions too small.
_USUAL_ERROR_OF_SHARE = 0.3
#: Least ratio of a mean prediction and a share, and of two curvatures.
_LEAST_RATIO = 0.2


class MeanPrediction(Stage):
    """Moves the intercepts of rare classes, so that the mean prediction is the share of the class.

    A row adds ``y - p``: whether it is of each class, less its probability. With sums ``r`` over ``n`` rows
    and released shares ``q``, intercepts move by ``logit(q) - logit(q - r / n)``, or by logarithms for more
    than two classes. A row also adds ``2 p (1 - p)``, which tells how far an intercept moves the mean.

    *Guarantee*: one Gaussian release. A row moves the sums by at most 1 in length for two classes, by
    ``sqrt(2)`` for more, and by ``sqrt(k)`` for k labels. The second part costs nothing: for a class with
    ``|y - p| = e``, both squares add up to ``e**2 (1 + 4 (1 - e)**2)``, which is at most ``e``, and these
    ``e`` of the classes add up to ``2 (1 - p)`` with the probability p of the own class.
    """

    name = "mean prediction"
    limits = _WORTH_OF_MEAN.limits
    needs = ("divides after",)

    def price(self, fit: Fit) -> Price | None:
        loss, logits = fit.data.loss, _logits_of_shares(fit)
        if logits is None:
            return None
        strength, weighted = fit.settings.logit_adjustment, fit.weights.of_any_class
        adjusts = strength != 0 and not (strength == "auto" and weighted)
        if loss.has_classes and loss.n_outputs > 1 and adjusts:
            return None  # an adjustment would move the means again
        share = share_for(fit.budget.mu, fit.data.n_rows, _longest_residual(loss), _WORTH_OF_MEAN)
        return share or None if weighted or float(np.abs(logits).max()) > -logit(RARE) else None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        logits, constant = _logits_of_shares(fit), fit.mapping.row_map.intercept_value
        assert fit.head is not None and fit.plan is not None and logits is not None and constant is not None
        moved = partial(
            at_shares,
            fit.head.W,
            logits=logits,
            loss=fit.weights.bare.loss,
            n_rows=fit.plan.info.n_effective,
            constant=constant,
        )
        W = yield from fit.correct(moved, price, fit.head.W)
        return fit.spent(self, price, head=replace(fit.head, W=W))


def _logits_of_shares(fit: Fit) -> FloatArray | None:
    """The logits (k,) of the shares that mean predictions should have; None if nothing tells them."""
    if fit.weights.n_counted and fit.mapping.row_map.intercept_value is not None:
        return np.zeros(fit.data.loss.n_outputs)  # balanced classes
    return fit.labels.logits


def _longest_residual(loss: Loss) -> float:
    """A bound on the length of ``y - p`` for any row."""
    if loss.n_outputs == 1:
        return 1.0
    return sensitivity_of(2 if loss.has_classes else loss.n_outputs)


def at_shares(
    W: FloatArray, multiplier: float, *, logits: FloatArray, loss: Loss, n_rows: float, constant: float
) -> Rounds:
    """The head (k, d_in) with intercepts at which mean predictions are the shares of ``logits`` (k,)."""
    bound, several = _longest_residual(loss), loss.has_classes and len(W) > 1
    (sums,) = yield PrivateQuery(
        W, partial(_errors_and_curvatures, has_classes=loss.has_classes), (ReleasedArray(bound),)
    )
    q = np.asarray(softmax(logits) if several else expit(logits))
    rarer, noise = np.minimum(q, 1 - q), multiplier * bound / n_rows
    missing, curvatures = np.split(sums / n_rows, 2)
    missing *= signal_part(_USUAL_ERROR_OF_SHARE * rarer, noise)
    means = np.clip(q - missing, q - (1 - _LEAST_RATIO) * rarer, q + (1 - _LEAST_RATIO) * rarer)
    moves = np.log(q / means) if several else logit(q) - logit(means)
    # That is exact if all rows have the same probability. Others have less variance, so means move less.
    variances = means * (1 - means)
    moves *= variances / np.clip(curvatures / 2, _LEAST_RATIO * variances, variances / _LEAST_RATIO)
    W = np.array(W)
    W[:, -1] += moves / constant
    return W


def _errors_and_curvatures(Z: FloatArray, block: Block, has_classes: bool) -> Contribution:
    """Classes or labels of each row less their probabilities p, and twice ``p (1 - p)``, (rows, 2 k)."""
    P = np.array(np.asarray(Z).T, np.float64, order="C")
    k = len(P)
    if has_classes and k > 1:
        P = np.exp(P - P.max(axis=0))
        P /= reduce(np.add, P)  # one by one, so that the order is the same for any number of rows
    else:
        P = expit(P)
    if has_classes:
        own = block.classes == np.arange(k)[:, np.newaxis] + (k == 1)
    else:
        own = np.asarray(block.y)[:, :k].T
    return None, np.nan_to_num(np.concatenate([own - P, 2 * P * (1 - P)]), copy=False).T


#: Noise in a mean, in units of the scale of the targets.
_WORTH_OF_RESIDUALS = Worth(0.0001, 0.0075, (0.005, 0.05))
#: Part of the budget for the lengths of residuals and effects.
_OF_LENGTHS = 0.4
#: Probability that noise makes an empty window of lengths look occupied.
_FALSE_RATE = 1e-4
#: For their mean, residuals are cut at this multiple of the end of the last window that has rows.
_BEYOND = 2.8
#: Effects are cut at a length that this part of the rows exceeds.
_FAR = 0.05
#: What a row adds to the sums: a residual, its product with the effect, the effect, and its square.
_WEIGHTS = np.array([1.0, 0.5, 0.25, 0.25])
_LENGTH = math.nextafter(float(np.linalg.norm(_WEIGHTS)), math.inf)
#: Prior standard deviations of the mean of the residuals, in the same units, and of a slope.
_USUAL_ERROR, _USUAL_SLOPE = 0.1, 0.3


class Residuals(Stage):
    """Moves and stretches the outputs of a regression by noisy least squares of residuals on effects.

    Clipped gradients make predictions of skewed targets too small, and their differences too. Histograms of
    lengths find where to cut residuals and effects, which are outputs without the intercepts. A row then adds
    both, their product, and the square of the effect.

    *Guarantee*: one Gaussian release, in two parts. A row adds 1 to one bin of each of 2 k histograms. It
    adds products of numbers in [-1, 1], times weights, for each of k targets. Their squares add up to the
    squared length of the weights.

    Source: Amin, Kulesza, Munoz Medina and Vassilvitskii 2019, "Bounding user contributions: a bias-variance
    trade-off in differential privacy", for the lengths.
    """

    name = "residuals"
    limits = _WORTH_OF_RESIDUALS.limits
    needs = ("targets", "default", "divides after")

    def price(self, fit: Fit) -> Price | None:
        if fit.mapping.row_map.intercept_value is None:
            return None
        moved = sensitivity_of(fit.data.loss.n_outputs)
        return share_for(fit.budget.mu, fit.data.n_rows, moved, _WORTH_OF_RESIDUALS) or None

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        constant = fit.mapping.row_map.intercept_value
        assert fit.head is not None and fit.plan is not None and constant is not None
        moved = partial(recalibrated, fit.head.W, n_rows=fit.plan.info.n_effective, constant=constant)
        W = yield from fit.correct(moved, price, fit.head.W)
        return fit.spent(self, price, head=replace(fit.head, W=W))


def recalibrated(W: FloatArray, multiplier: float, *, n_rows: float, constant: float) -> Rounds:
    """The head (k, d_in) whose residuals have a mean of 0, and none of whose effects would improve them."""
    k, offset = len(W), W[:, -1] * constant
    stated = ReleasedArray(sensitivity_of(2 * k), _OF_LENGTHS)
    (counts,) = yield PrivateQuery(W, partial(_bins_of_lengths, offset=offset), (stated,))
    noise = multiplier * stated.sensitivity / math.sqrt(_OF_LENGTHS)
    of_residuals, of_effects = counts.reshape(2, k, BINS)
    ends = np.array([_occupied_end(column, noise) for column in of_residuals])
    longest = np.array([_length_of_few(column, n_rows) for column in of_effects])
    terms = partial(_products_of_effects, offset=offset, ends=ends, longest=longest)
    stated = ReleasedArray(sensitivity_of(k) * _LENGTH, 1 - _OF_LENGTHS)
    (sums,) = yield PrivateQuery(W, terms, (stated,))
    error = multiplier * stated.sensitivity / math.sqrt(1 - _OF_LENGTHS) / n_rows
    residual, product, effect, square = sums.reshape(4, k) / n_rows / _WEIGHTS[:, np.newaxis]
    variance = np.maximum(square - effect**2, error / _WEIGHTS[3])
    mean = residual * _BEYOND * ends
    mean *= signal_part(_USUAL_ERROR, error * _BEYOND * ends)
    slope = (product * ends - mean * effect) / (variance * longest)
    slope *= signal_part(_USUAL_SLOPE, error / _WEIGHTS[1] * ends / (variance * longest))
    slope = np.clip(slope, -1.0, 2.0)
    W = np.array(W)
    W[:, :-1] *= 1 + slope[:, np.newaxis]
    W[:, -1] += (mean - slope * effect * longest) / constant
    return W


def _occupied_end(counts: FloatArray, noise: float) -> float:
    """The end of the last window of lengths that has rows."""
    seen = windows_of(counts, noise_threshold(counts, noise, _FALSE_RATE))
    return length_at(max((start + width for start, width, _ in seen), default=0))


def _length_of_few(counts: FloatArray, n_rows: float) -> float:
    """A length that about a part ``_FAR`` of the rows exceeds."""
    return length_at(int(np.append(np.cumsum(counts) >= (1 - _FAR) * n_rows, True).argmax()) + 1)


def _residuals_and_effects(Z: FloatArray, block: Block, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residuals and effects (rows, k)."""
    Z = np.asarray(Z, np.float64)
    return np.asarray(block.y)[:, : Z.shape[1]] - Z, Z - offset


def _bins_of_lengths(Z: FloatArray, block: Block, offset: FloatArray) -> Contribution:
    """Bins (rows, 2 k) of the lengths of residuals and effects."""
    return None, BinCounts(places_of(np.abs(np.hstack(_residuals_and_effects(Z, block, offset)))), BINS)


def _products_of_effects(
    Z: FloatArray, block: Block, offset: FloatArray, ends: FloatArray, longest: FloatArray
) -> Contribution:
    """Residuals, their products with effects, effects, and their squares, (rows, 4 k), cut and weighted."""
    residuals, effects = _residuals_and_effects(Z, block, offset)
    effects = clipped(effects / longest, 1.0)
    far, near = clipped(residuals / (_BEYOND * ends), 1.0), clipped(residuals / ends, 1.0)
    terms = [far, near * effects, effects, effects**2]
    return None, np.hstack([weight * term for weight, term in zip(_WEIGHTS, terms, strict=True)])


#: Fewest rows without labels for each class.
_FEWEST_PER_CLASS = 10
#: Rows of more columns are reduced to this number of directions of largest variance.
_MANY_COLUMNS, _MOST_DIRECTIONS = 400, 256
#: Directions below this fraction of the largest variance count as flat.
_FLAT = 1e-10
#: Rounds in which the student labels the rows anew.
_ROUNDS = 2
#: Weight of the discriminant, and the largest spread of its logits in units of those of the head.
_WEIGHT, _MOST_SPREAD = 0.3, 0.5
#: Smallest weight of the identity in the covariance within classes.
_LEAST_SHRINKAGE = 0.1
#: Number of halvings of the range of the factor, from 1e-3 to 1e3.
_HALVINGS = 60


def with_student(
    W: FloatArray, U: FloatArray, X: FloatArray, Y: FloatArray, span: FloatArray | None = None
) -> FloatArray:
    """The head ``W`` (k, d_in) plus a linear discriminant of rows that it labels itself.

    ``U`` (n, d_in) are mapped rows without labels, ``X`` (m, d_in) with indicators ``Y`` (m, k); the last
    column of both is the intercept's. ``span`` (d, r) are orthonormal directions of all rows, if they are
    few. The discriminant has the means and the covariance within classes under the probabilities of the head.
    The sum is as sure of the rows as the head.

    *Guarantee*: post-processing of a released head by public rows.
    """
    rows, labelled, constant = U[:, :-1], X[:, :-1], float(U[0, -1])
    directions = _directions(rows) if span is None else span
    rows, labelled = rows @ directions, labelled @ directions
    Z = U @ W.T
    n, d = rows.shape
    probabilities = softmax(Z, axis=1)
    shrinkage = max(_LEAST_SHRINKAGE, d / (d + n))
    total = (rows.T @ rows + labelled.T @ labelled) / (n + len(labelled))
    for _ in range(_ROUNDS):
        sizes = probabilities.sum(axis=0) + Y.sum(axis=0) + 1e-3
        means = (probabilities.T @ rows + Y.T @ labelled) / sizes[:, np.newaxis]
        within = total - (means.T * (sizes / sizes.sum())) @ means
        within = (1 - shrinkage) * within + shrinkage * np.trace(within) / d * np.eye(d)
        of_rows = np.linalg.solve(within, means.T)
        offsets = 0.5 * (means.T * of_rows).sum(axis=0)
        logits = rows @ of_rows - offsets
        weight = min(_WEIGHT, _MOST_SPREAD * _spread(Z) / max(_spread(logits), 1e-300))
        probabilities = softmax(weight * logits + Z, axis=1)
    student = np.column_stack([of_rows.T @ directions.T, -offsets / constant])
    return _factor_of_sureness(weight * logits + Z, Z) * (W + weight * student)


def _directions(rows: FloatArray) -> FloatArray:
    """Orthonormal directions (d, r) of rows (n, d) that vary, as columns."""
    has_few_rows, has_many_columns = len(rows) < rows.shape[1], rows.shape[1] > _MANY_COLUMNS
    rows = rows.astype(np.float32) if has_many_columns else rows  # half the time
    gram = rows @ rows.T if has_few_rows else rows.T @ rows
    most = min(len(gram), _MOST_DIRECTIONS if has_many_columns else len(gram))
    values, vectors = eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    leading = vectors[:, values > max(_FLAT, float(np.finfo(values.dtype).eps)) * values[-1]]
    directions = np.linalg.qr(rows.T @ leading)[0] if has_few_rows else leading
    return directions.astype(np.float64)


def _spread(logits: FloatArray) -> float:
    """Standard deviation of logits (n, k) less the mean of each row."""
    return float((logits - logits.mean(axis=1, keepdims=True)).std())


def _factor_of_sureness(logits: FloatArray, of_head: FloatArray) -> float:
    """The factor of logits (n, k) at which their mean top probability is that of the head."""
    wanted, low, high = _sureness(of_head), 1e-3, 1e3
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _sureness(middle * logits) < wanted else (low, middle)
    return math.sqrt(low * high)


def _sureness(logits: FloatArray) -> float:
    return float(softmax(logits, axis=1).max(axis=1).mean())


class Student(Stage):
    """Corrects the head by public rows without labels, which the head labels. It costs nothing."""

    name = ""
    needs = ("self-training",)

    def price(self, fit: Fit) -> Price | None:
        n_classes = fit.data.loss.n_outputs
        if n_classes < 3:
            raise ValueError("self_training=True needs three classes or more; pass self_training=False.")
        if not fit.settings.rows.fit_intercept:
            raise ValueError("self_training=True needs fit_intercept=True; pass it, or self_training=False.")
        if fit.public.of_scales is not None:
            return None  # public rows were left out
        n_rows = 0 if fit.public.unlabeled is None else len(fit.public.unlabeled)
        if n_rows < _FEWEST_PER_CLASS * n_classes:
            raise ValueError(
                f"self_training=True needs {_FEWEST_PER_CLASS} rows of X_unlabeled for each of the "
                f"{n_classes} classes, and got {n_rows} in all; pass more, or self_training=False."
            )
        return 0.0

    def run(self, fit: Fit, price: Price) -> Procedure[Fit]:
        yield from ()  # no queries
        assert fit.head is not None and fit.public.unlabeled is not None
        row_map = fit.mapping.row_map
        rows, labelled = (row_map(each, np.float64) for each in (fit.public.unlabeled, fit.public.X))
        of_classes = np.eye(fit.data.loss.n_outputs)[fit.public.y]
        whitening = row_map.whitening
        span = whitening.directions.T if whitening is not None and whitening.rest == 0 else None
        W = with_student(fit.head.W, rows, labelled, of_classes, span)
        return fit.spent(self, price, head=replace(fit.head, W=W))
