"""Regressions on ill-conditioned designs, against least squares.

``python -m benchmarks.utility.conditioning [--half 2]`` prints one line for each design: R2 less that of
least squares, the mean of three seeds of the noise.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from skmixdp import MixedDPRidge

Array = NDArray[Any]
Design = tuple[Array, Array]

N_ROWS = 25_000
_ALL = N_ROWS + 5_000


def spectrum(seed: int, power: float = 0.7, d: int = 100, noise: float = 1.0) -> Design:
    """Columns turned at random, with deviations ``i^-power`` along the axes."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(d, d)))[0] / np.arange(1, d + 1)[:, np.newaxis] ** power
    X = rng.normal(size=(_ALL, d)) @ turned
    return X, X @ rng.normal(size=d) * 3 + noise * rng.normal(size=_ALL)


def polynomial(seed: int) -> Design:
    """All products up to degree 4 of four numbers."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(_ALL, 4))
    signal = np.sin(5 * x[:, 0]) + np.exp(x[:, 1]) * x[:, 2] + 2 * x[:, 3] ** 3 * x[:, 0]
    return PolynomialFeatures(4, include_bias=False).fit_transform(x), signal + 0.3 * rng.normal(size=_ALL)


def powers(seed: int) -> Design:
    """Nine powers of one number, and a target that swings twice."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(_ALL, 1))
    y = np.sin(6 * x[:, 0]) + x[:, 0] ** 2 + 0.3 * rng.normal(size=_ALL)
    return PolynomialFeatures(9, include_bias=False).fit_transform(x), y


def spline(seed: int) -> Design:
    """Fourteen splines of each of four numbers, which add up to a constant."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(_ALL, 4))
    signal = np.sin(8 * x[:, 0]) + np.exp(x[:, 1]) + 3 * np.abs(x[:, 2] - 0.4) + x[:, 3]
    return SplineTransformer(n_knots=12).fit_transform(x), signal + 0.4 * rng.normal(size=_ALL)


def categories(seed: int) -> Design:
    """Three one-hot columns with five skewed numbers, two of which are nearly the same."""
    rng = np.random.default_rng(seed)
    sizes = (20, 12, 6)
    codes = [rng.choice(size, p=rng.dirichlet(np.ones(size)), size=_ALL) for size in sizes]
    numbers = rng.lognormal(size=(_ALL, 5)) * [1, 10, 100, 1e3, 1e4]
    numbers[:, 1] = 3 * numbers[:, 0] + 0.1 * numbers[:, 1]
    y = sum(rng.normal(size=size)[code] for size, code in zip(sizes, codes, strict=True))
    y = y + np.log(numbers[:, 0]) + 0.003 * numbers[:, 2] + rng.normal(size=_ALL)
    return np.hstack([*(np.eye(size)[code] for size, code in zip(sizes, codes, strict=True)), numbers]), y


def channels(seed: int) -> Design:
    """Ninety channels of a spectrometer: twelve peaks, a baseline and a little noise."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, 90)
    middles, widths = rng.uniform(size=(12, 1)), rng.uniform(0.03, 0.15, size=(12, 1))
    amounts = rng.gamma(2, size=(_ALL, 12))
    X = amounts @ np.exp(-0.5 * ((t - middles) / widths) ** 2)
    X += 0.02 * rng.normal(size=X.shape) + 0.5 * rng.normal(size=(_ALL, 1))
    return X, amounts @ rng.normal(size=12) + 0.5 * rng.normal(size=_ALL)


def lags(seed: int, n_lags: int = 48) -> Design:
    """Earlier values of an autoregressive series far from 0."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=_ALL + n_lags + 1)
    for i in range(2, len(series)):
        series[i] += 1.6 * series[i - 1] - 0.64 * series[i - 2]
    return _lagged(series + 10, n_lags)


def seasons(seed: int, n_lags: int = 30) -> Design:
    """Earlier values of a series with two periods and a random walk."""
    rng, t = np.random.default_rng(seed), np.arange(_ALL + n_lags + 1)
    walk = 0.02 * np.cumsum(rng.normal(size=len(t)))
    waves = 3 * np.sin(2 * np.pi * t / 24) + 2 * np.sin(2 * np.pi * t / 168)
    return _lagged(waves + walk + 0.3 * rng.normal(size=len(t)), n_lags)


def _lagged(series: Array, n_lags: int) -> Design:
    rows = np.lib.stride_tricks.sliding_window_view(series, n_lags)[:_ALL]
    return np.ascontiguousarray(rows), series[n_lags : n_lags + _ALL]


def factors(seed: int) -> Design:
    """Sixty columns of five factors, with heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(_ALL, 5)) @ rng.normal(size=(5, 60)) + 0.3 * rng.standard_t(5, size=(_ALL, 60))
    return X, X @ rng.normal(size=60) + 3 * rng.normal(size=_ALL)


def copies(seed: int) -> Design:
    """Twenty columns, nearly equal copies, and running sums."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(_ALL, 20))
    X = np.hstack([base, base + 0.05 * rng.normal(size=base.shape), base.cumsum(axis=1) / 3])
    weights = rng.normal(size=60) * np.repeat([3.0, 1.0], [40, 20])
    return X, X @ weights + 2 * rng.normal(size=_ALL)


def bumps(seed: int) -> Design:
    """Fifty radial functions of two numbers."""
    rng = np.random.default_rng(seed)
    x, centres = rng.normal(size=(_ALL, 2)), rng.normal(size=(50, 2))
    X = np.exp(-0.5 * ((x[:, np.newaxis] - centres) ** 2).sum(axis=2))
    return X, np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * rng.normal(size=_ALL)


def waves(seed: int) -> Design:
    """Sines and cosines of three numbers, smaller the faster, and a target with a step."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(_ALL, 3))
    each = [f(np.pi * j * x) / j for j in range(1, 9) for f in (np.sin, np.cos)]
    y = np.sign(x[:, 0] - 0.5) + 3 * x[:, 1] ** 2 + 2 * np.abs(x[:, 2] - 0.3) + 0.4 * rng.normal(size=_ALL)
    return np.hstack([x, *each]), y


def decays(seed: int) -> Design:
    """Forty readings of sums of exponential decays at five rates, and a total of their amounts."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 4, 40)
    amounts = rng.gamma(2, size=(_ALL, 5))
    X = amounts @ np.exp(-np.array([[0.2], [0.5], [1], [2], [5]]) * t) + 0.05 * rng.normal(size=(_ALL, 40))
    return X, amounts @ rng.normal(size=5) + 0.5 * rng.normal(size=_ALL)


def compositions(seed: int) -> Design:
    """Twelve shares that add up to 1, their logarithms, and the amounts themselves."""
    rng = np.random.default_rng(seed)
    amounts = rng.lognormal(sigma=0.8, size=(_ALL, 12))
    shares = amounts / amounts.sum(axis=1, keepdims=True)
    y = np.log(shares) @ rng.normal(size=12) + 5 * shares @ rng.normal(size=12) + rng.normal(size=_ALL)
    return np.hstack([shares, np.log(shares), amounts]), y


def nested(seed: int) -> Design:
    """Fifty towns in eight regions, all one-hot, with sums and products of two numbers."""
    rng = np.random.default_rng(seed)
    town, x = rng.choice(50, p=rng.dirichlet(np.ones(50)), size=_ALL), rng.normal(size=(_ALL, 2))
    region = rng.integers(0, 8, size=50)[town]
    y = rng.normal(size=50)[town] + 2 * rng.normal(size=8)[region] + x[:, 0] * x[:, 1] + x[:, 0]
    sums = np.column_stack([x, x.sum(axis=1), x[:, 0] - 0.9 * x[:, 1], x.prod(axis=1), x**2])
    return np.hstack([np.eye(50)[town], np.eye(8)[region], 10 * sums]), y + rng.normal(size=_ALL)


def pixels(seed: int) -> Design:
    """Eight by eight blurred pixels of noise."""
    rng, place = np.random.default_rng(seed), np.arange(8)
    blur = np.exp(-0.5 * ((place[:, np.newaxis] - place) / 1.2) ** 2)
    images = blur @ rng.normal(size=(_ALL, 8, 8)) @ blur
    X = images.reshape(_ALL, 64) + 0.05 * rng.normal(size=(_ALL, 64))
    return X, X @ rng.normal(size=64) + 3 * rng.normal(size=_ALL)


def averages(seed: int) -> Design:
    """Moving averages over 1 to 40 days of a random walk, and its next step with some momentum."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=_ALL + 41)
    for i in range(1, len(steps)):
        steps[i] += 0.6 * steps[i - 1]
    rows, _ = _lagged(np.cumsum(steps - steps.mean()) / 10, 40)
    return np.cumsum(rows[:, ::-1], axis=1) / np.arange(1, 41), steps[40 : 40 + _ALL]


DESIGNS: dict[str, Callable[[], Design]] = {
    "turned spectrum, 1": lambda: spectrum(0),
    "turned spectrum, 2": lambda: spectrum(1),
    "turned spectrum, 3": lambda: spectrum(2),
    "steep spectrum": lambda: spectrum(11, 1.5, 50, 0.3),
    "products of degree 4": lambda: polynomial(3),
    "powers of one number": lambda: powers(4),
    "splines": lambda: spline(5),
    "categories and numbers": lambda: categories(6),
    "channels of a spectrometer": lambda: channels(7),
    "lags": lambda: lags(8),
    "lags of seasons": lambda: seasons(9),
    "factors": lambda: factors(10),
    "copies and sums": lambda: copies(12),
    "radial functions": lambda: bumps(13),
    "waves": lambda: waves(14),
}
#: Designs that were looked at once, after all constants were chosen.
UNSEEN: dict[str, Callable[[], Design]] = {
    "sums of decays": lambda: decays(21),
    "compositions": lambda: compositions(22),
    "towns in regions": lambda: nested(23),
    "blurred pixels": lambda: pixels(24),
    "moving averages": lambda: averages(25),
}


def behind(name: str, epsilon: float, seeds: int = 3) -> tuple[float, float, float, int]:
    """R2 of least squares, by how much that of a private fit is higher, its spread, and the steps."""
    X, y = (DESIGNS | UNSEEN)[name]()
    test = slice(N_ROWS, None)
    plain = LinearRegression().fit(X[:N_ROWS], y[:N_ROWS]).score(X[test], y[test])
    fits = []
    for seed in range(seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reg = MixedDPRidge(epsilon=epsilon, delta=1e-5, random_state=seed)
            fits.append(reg.fit(X[:N_ROWS], y[:N_ROWS]))
    scores = np.array([each.score(X[test], y[test]) for each in fits]) - plain
    return plain, float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(seeds)), fits[-1].n_iter_


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", type=int, choices=(1, 2), default=1)
    designs = UNSEEN if parser.parse_args().half == 2 else DESIGNS
    print("| design | columns | least squares | epsilon 1 | steps | epsilon 1e6 | steps |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, design in designs.items():
        cells = []
        for epsilon in (1.0, 1e6):
            plain, gain, error, n_steps = behind(name, epsilon)
            cells.append(f"{gain:+.4f} ± {error:.4f} | {n_steps}")
        print(f"| {name} | {design()[0].shape[1]} | {plain:.4f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
