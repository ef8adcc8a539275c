"""Private prototypes: a noisy mean for each class, or public rows that private ones vote for.

Wahdany, Jagielski, Dziedzic and Boenisch 2024, "Beyond the Mean: Differentially Private Prototypes for
Private Transfer Learning". Rows have unit length; the prototype nearest to a row names its class.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.preprocessing import normalize

from skmixdp.privacy import NoiseSource

from ..problems import Array, Problem
from .contract import Score
from .releases import class_sums, codes, multipliers, noise_of, noisy_class_sums, unit_rows

#: Value of the column that counts rows, next to features of unit length.
_COUNTER = 0.2

#: Share of the first of two steps, as in CoinPress's (5, 7, 52) / 64 with its first two together.
_FIRST = 12 / 64


def fit_mean(
    problem: Problem, epsilons: Sequence[float], *, public_weights: Sequence[float], radii: Sequence[float]
) -> list[Score]:
    """DPPL-Mean with Gaussian noise: each class's mean, released once or in two steps.

    Settings are three ways to score a row: the product with a class's noisy sum ("sum"), the cosine with it
    ("cosine"), and the distance from the noisy mean ("mean"). "two steps" releases means with 12/64 of the
    budget, clips what rows differ from them to a radius, and releases the mean of that, as CoinPress
    does in the authors' package. Public rows add to the sums, as often as ``public_weights`` says.

    Sensitivity: the sums of all classes together change by one row, which has length 1 at most.
    """
    y, y_pub = codes(problem, problem.y), codes(problem, problem.y_pub)
    k, weights = len(problem.classes), public_weights if len(y_pub) else (0.0,)
    plain, counted = unit_rows(problem), unit_rows(problem, _COUNTER)
    found = []
    for epsilon in epsilons:
        (sigma,) = multipliers(epsilon, [1.0])
        sums = noisy_class_sums(plain[0], y, k, sigma, noise_of(problem, epsilon))
        counts = noisy_class_sums(counted[0], y, k, sigma, noise_of(problem, epsilon))
        steps = {radius: _two_steps(plain[0], counted[0], y, k, radius, problem, epsilon) for radius in radii}
        for weight in weights:
            text = f", public rows x {weight:g}" if weight else ""
            own = sums + weight * class_sums(plain[1], y_pub, k)
            more = weight * class_sums(counted[1], y_pub, k)
            candidates = {"sum": plain[2] @ own.T, "cosine": plain[2] @ normalize(own).T}
            candidates["mean"] = _nearest(counts + more, plain[2], sigma)
            for radius, (refined, deviation) in steps.items():
                name = f"two steps, radius {radius:g}"
                candidates[name] = _nearest(refined + more, plain[2], deviation)
            found += [
                _score(problem, epsilon, name + text, sigma, table) for name, table in candidates.items()
            ]
    return found


def _nearest(sums: Array, X_test: Array, sigma: float) -> Array:
    """Scores by the distance from each class's mean; the noise's share of its square is taken off."""
    # A row with its counter has unit length: sums and counts are smaller by the same factor.
    counts = np.maximum(sums[:, -1:] / _COUNTER, 1.0)
    means = sums[:, :-1] / counts
    squares = np.square(means).sum(axis=1) - means.shape[1] * np.square(sigma / counts[:, 0])
    return np.asarray(X_test @ means.T - np.maximum(squares, 0) / 2)


def _two_steps(
    X: Array, counted: Array, y: Array, k: int, radius: float, problem: Problem, epsilon: float
) -> tuple[Array, float]:
    """Sums of each class in two steps, as of ``counted``, and the deviation of their noise.

    The second step releases how rows differ from the first step's means. The counters are the first step's.
    """
    noise = noise_of(problem, epsilon)
    first, second = multipliers(epsilon, [_FIRST, 1 - _FIRST])
    rough = noisy_class_sums(counted, y, k, first, noise)
    counts = np.maximum(rough[:, -1:] / _COUNTER, 1.0)
    centres = rough[:, :-1] / counts
    rest = X - centres.astype(np.float32)[y]
    rest = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), radius)
    scale = radius / np.hypot(1, _COUNTER)  # the length of the features of a row of ``counted``
    refined = centres * counts + scale * noisy_class_sums(rest, y, k, second, noise)
    return np.hstack([refined, rough[:, -1:]]), float(scale * second)


def fit_public(
    problem: Problem, epsilons: Sequence[float], *, n_prototypes: Sequence[int], most: Sequence[float]
) -> list[Score]:
    """DPPL-Public: for each class, public rows drawn by the exponential mechanism; delta is 0.

    A public row's score for a class is the sum of its similarities to the class's private rows. A similarity
    is the cosine, clipped to [0, ``most``] and divided by ``most``. A prototype is the mean of
    ``n_prototypes`` public rows, drawn one after the other, each with that part of epsilon.

    Sensitivity: a row changes the scores of one class, all upwards or all downwards, by 1 at most. The weight
    ``exp(epsilon * score)`` then needs no factor 1/2, and all classes together spend epsilon.
    """
    X, X_pub, X_test = unit_rows(problem)
    y = codes(problem, problem.y)
    found = []
    for limit in most:
        similar = np.clip(X_pub @ X.T, 0, limit) / limit
        scores = class_sums(similar.T, y, len(problem.classes))
        for epsilon in epsilons:
            for count in n_prototypes:
                chosen = drawn(scores, epsilon, count, noise_of(problem, epsilon))
                table = X_test @ normalize(X_pub[chosen].mean(axis=1)).T
                guessed = problem.classes[table.argmax(axis=1)]
                setting = f"{count} of the public rows, similarity up to {limit:g}"
                found.append(Score(epsilon, problem.measures_of(guessed), setting, "delta 0"))
    return found


def drawn(scores: Array, epsilon: float, count: int, noise: NoiseSource) -> Array:
    """Places of ``count`` columns for each row of scores, by the exponential mechanism without replacement.

    Each draw has weights ``exp(epsilon / count * score)``. The largest of the scores with Gumbel noise
    are such draws.
    """
    gumbel = -np.log(-np.log1p(-noise.uniform(scores.shape)))
    return np.argsort(-(epsilon / count * scores + gumbel), axis=1)[:, :count]


def _score(problem: Problem, epsilon: float, setting: str, sigma: float, table: Array) -> Score:
    measured = problem.measures_of(problem.classes[table.argmax(axis=1)])
    return Score(epsilon, measured, setting, f"noise multiplier {sigma:.3g}")
