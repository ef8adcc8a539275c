"""What went into each release of a fit, what was stated of it, the noise asked for, and what came out."""

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, count
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import binom, chi2, kstest, norm

from skmixdp.privacy import NoiseSource
from skmixdp.privacy.noise import DiscreteNoise
from tests.private_names import Released, Request, dotted_path, public_code

#: ``NoiseSource.<METHOD>(array, scale, grid)``: the array plus noise.
METHOD = "add_noise"
#: ``skmixdp._engine.release.<FUNCTION>(rows, visits)``: noisy answers to queries of several runs.
FUNCTION = "release"

#: Each statistic of a sound sample is rejected with a probability below this.
LEVEL = 2e-8
#: The same for each statistic of the tails of a sample, of which there are ten.
TAIL_LEVEL = 5e-11
#: Standard deviations that the mean of 10,000 and more fourth powers exceeds more rarely than that. A normal
#: mean would with a probability of 6e-14. The skewness of a fourth power, 10, makes that up to 50 times more.
FAR_OF_FOURTH = 7.5
#: Standard deviations that a sum of a thousand products of independent draws exceeds that rarely.
FAR = 5.8


@dataclass(frozen=True)
class Release:
    """One array that left private rows.

    Attributes
    ----------
    run : object
        Whose it is: releases of one run have the same.
    of_pass : int
        Number of the pass over the rows that answered it.
    sensitivity, share : float
        As stated for the array.
    mask : boolean array or None
        Rows that took part; None is all.
    exact, noisy : array
        What the rows summed to, and what the run was given.
    scale : float
        Standard deviation that the source of noise was asked for.
    grid : float or None
        Of what the noisy array is to be a multiple.
    source : NoiseSource
        The source.
    rounding : float
        What of the sensitivity covers the rounding of sums.
    """

    run: object
    of_pass: int
    sensitivity: float
    share: float
    mask: np.ndarray | None
    exact: np.ndarray
    noisy: np.ndarray
    scale: float
    grid: float | None
    source: NoiseSource
    rounding: float = 0.0

    def scale_for(self, noise_multiplier: float) -> float:
        """The standard deviation that a multiplier asks for."""
        return noise_multiplier * self.sensitivity / math.sqrt(self.share)

    def draws(self, noise_multiplier: float) -> np.ndarray:
        """The noise in the units in which it should be standard normal."""
        return np.ravel(self.noisy - self.exact) / self.scale_for(noise_multiplier)


#: Takes a release and those before it, and returns the noisy array that is handed out in its place.
Sabotage = Callable[[Release, list[Release]], np.ndarray]


#: Takes a request, and returns the one that is put to the rows in its place, with the same answer.
Listener = Callable[[Request], Request]


class _Rows:
    """Private rows that keep what they are asked and what they answer."""

    def __init__(self, rows: Any, listener: Listener | None) -> None:
        self._rows = rows
        self._listener = listener

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def private_sums(self, requests):
        self.masks = [request.batch.mask for request in requests]
        self.errors = [self._rows.sum_error(request) for request in requests]
        if self._listener is not None:
            requests = [self._listener(request) for request in requests]
        self.answers = self._rows.private_sums(requests)
        return self.answers


def watch(
    monkeypatch: Any, sabotage: Sabotage | None = None, listener: Listener | None = None
) -> list[Release]:
    """Record all releases from now on, in their order, and change what they hand out."""
    asked: list[tuple[NoiseSource, float, float | None]] = []

    def asking(method):
        def add(self, array, scale, grid):
            asked.append((self, float(scale), grid))
            return method(self, array, scale, grid)

        return add

    for kind in (NoiseSource, DiscreteNoise):
        monkeypatch.setattr(kind, METHOD, asking(vars(kind)[METHOD]))

    importlib.import_module(
        dotted_path("noisy_sums_module")
    )  # which is loaded late otherwise, and would keep what follows
    original = getattr(sys.modules[dotted_path("release_module")], FUNCTION)
    log: list[Release] = []
    passes = count()

    def watched(rows, visits):
        del asked[:]
        of_pass = next(passes)
        seen = _Rows(rows, listener)
        noisy = original(seen, visits)
        present = [[part for part in answer if part is not None] for answer in seen.answers]
        exact = [query.assemble(answer) for (_, query), answer in zip(visits, present, strict=True)]
        n_parts = sum(len(query.releases) for _, query in visits)
        with public_code():  # what fails here fails the test as an assertion
            assert len(asked) == n_parts, f"{n_parts} arrays were released, with noise in {len(asked)}"
        sources = iter(asked)
        handed_out = []
        for (run, query), mask, error, sums, released in zip(
            visits, seen.masks, seen.errors, exact, noisy, strict=True
        ):
            given = []
            parts, answers = released.stated, released.arrays
            # What the clips guarantee, and what the rows say of the rounding of their sums.
            with public_code():
                assert parts == tuple(part.as_computed(error) for part in query.releases)
            for part, asked_part, total, answer in zip(parts, query.releases, sums, answers, strict=True):
                source, scale, grid = next(sources)
                release = Release(
                    run,
                    of_pass,
                    part.sensitivity,
                    part.share,
                    mask,
                    np.array(total, dtype=np.float64),
                    np.array(answer, dtype=np.float64),
                    scale,
                    grid,
                    source,
                    part.sensitivity - asked_part.sensitivity,
                )
                if sabotage is not None:
                    release = Release(**{**vars(release), "noisy": sabotage(release, log)})
                log.append(release)
                given.append(release.noisy.copy())
            handed_out.append(Released(parts, tuple(given)))
        return handed_out

    for module in _callers(len(sys.modules)):
        if vars(module)[FUNCTION] is original:
            monkeypatch.setattr(module, FUNCTION, watched)
    return log


@lru_cache(maxsize=1)
def _callers(n_modules: int) -> list[ModuleType]:
    """Modules of the package that have the function, looked for anew whenever modules were imported."""
    named = [module for name, module in sys.modules.items() if name.split(".")[0] == "skmixdp"]
    return [module for module in named if FUNCTION in vars(module)]


def by_run(releases: list[Release]) -> list[list[Release]]:
    """The releases of each run, in the order of their first ones."""
    runs: dict[int, list[Release]] = {}
    for release in releases:
        runs.setdefault(id(release.run), []).append(release)
    return list(runs.values())


def assert_scales(run: list[Release], noise_multiplier: float, n_steps: int) -> None:
    """Noise of the stated scale was asked for, and the shares of the steps are used up, and no more."""
    asked = np.array([release.scale for release in run])
    needed = np.array([release.scale_for(noise_multiplier) for release in run])
    assert (needed > 0).all() and (np.abs(asked - needed) <= 1e-14 * needed).all(), (
        "another scale was asked for"
    )
    shares = np.array([release.share for release in run])
    assert (shares > 0).all() and abs(shares.sum() - n_steps) <= 1e-9 * n_steps, "shares of other steps"


def assert_energies(samples: list[np.ndarray], level: float = LEVEL) -> None:
    """The sum of squares of each sample may be that of as many standard normal draws.

    Sound samples fail with a probability of at most ``level`` in all.
    """
    energies, sizes = np.array([(float(sample @ sample), len(sample)) for sample in samples]).T
    tails = np.minimum(chi2.cdf(energies, sizes), chi2.sf(energies, sizes))
    worst = int(np.argmin(tails))
    assert tails[worst] > level / 2 / len(samples), (
        f"mean square {energies[worst] / sizes[worst]:.3g} of {int(sizes[worst])} draws"
    )


def assert_uncorrelated(one: np.ndarray, other: np.ndarray) -> None:
    """Two standard normal samples may be independent; sound ones fail with a probability of LEVEL."""
    product = one * other
    assert abs(product.sum()) < FAR * math.sqrt(len(product)), "correlated draws"


def assert_tails(draws: np.ndarray) -> None:
    """The tails of many standard normal draws are there, on both sides, and no longer than they should be.

    Compared are the kurtosis, the largest draw on either side, and how many draws lie beyond some thresholds,
    with their exact distributions. Sound draws fail with a probability of at most ``10 * TAIL_LEVEL``.
    """
    n = len(draws)
    kurtosis = float(np.mean(np.square(np.square(draws))))
    assert abs(kurtosis - 3) < FAR_OF_FOURTH * math.sqrt(96 / n), f"kurtosis {kurtosis:.4g} of {n} draws"
    for side in (draws, -draws):
        largest = float(side.max())
        below = n * float(log_ndtr(largest))  # logarithm of the probability that all are
        assert below > math.log(TAIL_LEVEL / 2), f"no draw of {n} is above {largest:.4g}"
        assert -math.expm1(below) > TAIL_LEVEL / 2, f"a draw of {n} is {largest:.4g}"
    size = np.abs(draws)
    for threshold in (1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0):
        count, law = int(np.count_nonzero(size > threshold)), binom(n, 2 * norm.sf(threshold))
        likely = min(law.cdf(count), law.sf(count - 1)) > TAIL_LEVEL / 2
        assert likely, f"{count} draws of {n} are beyond {threshold:g}"


def assert_fresh(steps: list[np.ndarray]) -> None:
    """The draws of each step are standard normal, and new: those of the two steps before say nothing of them.

    A sound sample fails with a probability of at most ``4 * LEVEL``.
    """
    everything = np.concatenate(steps)
    assert_energies([everything])
    assert kstest(everything, "norm").pvalue > LEVEL, "not normal"
    compared = 0
    for lag in (1, 2):
        pairs = [(a, b) for a, b in zip(steps, steps[lag:], strict=False) if a.shape == b.shape]
        if pairs:
            assert_uncorrelated(*map(np.concatenate, zip(*pairs, strict=True)))
            compared += len(pairs)
    assert compared >= len(steps) - 2, "no steps to compare"


def check_releases(log, stated):
    """All that must hold of the releases of a path, whose runs have these multipliers and steps."""
    runs = by_run(log)
    assert len(runs) == len(stated)
    draws = []
    for run, (noise_multiplier, n_steps) in zip(runs, stated, strict=True):
        assert_scales(run, noise_multiplier, n_steps)
        draws.append([release.draws(noise_multiplier) for release in run])
    assert_energies([step for steps in draws for step in steps])  # no release without its noise
    side_by_side = [steps for steps in draws if len(steps) > 1]
    if side_by_side:
        assert_fresh([np.concatenate(steps) for steps in zip(*side_by_side, strict=True)])
    for one, other in combinations(side_by_side, 2):
        assert_uncorrelated(np.concatenate(one), np.concatenate(other))
    one_by_one = [steps[0] for steps in draws if len(steps) == 1]
    if sum(map(len, one_by_one)) > 500:
        assert_fresh(one_by_one)
    assert not any((release.noisy == release.exact).any() for release in log)


def scaled(factor, only=lambda release: True):
    """Noise that is ``factor`` times as large on some of the releases."""

    def fault(log):
        return [replace(r, noisy=r.exact + factor * (r.noisy - r.exact)) if only(r) else r for r in log]

    return fault


def repeated_in_every_step(log):
    """The noise of the first release of a shape, on the scale of each."""
    first = {}
    changed = []
    for release in log:
        unit = first.setdefault(release.exact.shape, (release.noisy - release.exact) / release.scale)
        changed.append(replace(release, noisy=release.exact + release.scale * unit))
    return changed


def repeated_in_every_run(log):
    """Runs that are fitted together have the noise of the first of them."""
    first, *others = by_run(log)
    changed = list(first)
    for run in others:
        for release, model in zip(run, first, strict=True):
            unit = (model.noisy - model.exact) / model.scale
            changed.append(replace(release, noisy=release.exact + release.scale * unit))
    return changed


def smaller_scale_asked_for(log):
    """What a source was asked for, whatever it drew."""
    return [replace(release, scale=release.scale * (1 - 1e-9)) for release in log]


LAST = "the last release nearly exact"
FAULTS = {
    "2/3": scaled(2 / 3),
    "3/2": scaled(3 / 2),
    "1e-6": scaled(1e-6),
    LAST: lambda log: [*log[:-1], *scaled(1e-6)(log[-1:])],
    "the same in every step": repeated_in_every_step,
    "a scale that is one part in 1e9 too small": smaller_scale_asked_for,
    "one step more": lambda log: [*log, log[-1]],
}
REPEATED = {"the same in every run": repeated_in_every_run}


def recorded(monkeypatch, path):
    """The releases of a path, and what it states of them."""
    with monkeypatch.context() as patch:
        log = watch(patch)
        stated = path()
    return log, stated


def assert_found(faults, log, stated):
    """Each fault is found in releases that are sound."""
    for name, fault in faults.items():
        if name == LAST and log[-1].exact.size < 4:
            continue  # the energy of a few draws may be small by chance
        faulty = fault(log)
        try:
            check_releases(faulty, stated)
        except AssertionError:
            continue
        pytest.fail(f"noise with this fault passed: {name}")
