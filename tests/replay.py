"""Replays what a fit released in a fit to neighbouring rows: nothing else that anybody sees may then differ.

A fit is run twice. The second run, on neighbouring rows, gets the noisy arrays of the first one in place of
its own, and draws the same batches and directions. Whatever still differs, a warning, an attribute, the order
of callbacks, the releases that share a pass, tells of the private rows, and no noise covers it. The sums may
differ by as much as was stated of them.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from skmixdp.privacy import noise
from tests.noise import Release, watch


class Calls:
    """A callback of scikit-learn that lists its calls."""

    def __init__(self) -> None:
        self.list: list[tuple[Any, ...]] = []

    def setup(self, estimator, context):
        self.list.append(("setup", type(estimator).__name__))

    def teardown(self, estimator, context):
        self.list.append(("teardown", type(estimator).__name__))

    def on_fit_task_begin(self, estimator, context):
        self.list.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
        facts = None if metadata is None else facts_of(metadata, "metadata")
        self.list.append(("end", context.task_name, context.task_id, repr(facts)))
        return False


@dataclass
class Seen:
    """What can be seen of a run.

    Attributes
    ----------
    releases : list of Release
        All arrays that left private rows, in their order.
    facts : dict
        By name, what must not depend on private rows but through the releases.
    """

    releases: list[Release]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def stated(self) -> float:
        """The mu of zeroing out a row that the noise covers, if no batch is drawn."""
        return math.sqrt(sum((r.sensitivity / r.scale) ** 2 for r in self.releases))


#: What runs a fit: it gets the callback, and returns everything that comes out.
Path = Callable[[Calls], Any]


def seen(monkeypatch: Any, path: Path, earlier: Seen | None = None) -> Seen:
    """Run a path, and hand out the noisy arrays of an earlier run, if one is given."""
    keys, calls = count(), Calls()

    def handed_out(release: Release, log: list[Release]) -> np.ndarray:
        if earlier is None or len(log) >= len(earlier.releases):
            return release.noisy
        known = earlier.releases[len(log)].noisy
        return known if known.shape == release.noisy.shape else release.noisy

    def generator(seed: int | None) -> np.random.Generator:
        return np.random.default_rng([next(keys), 0 if seed is None else seed])

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        patch.setattr(noise, "_generator_of", generator)
        found = Seen(watch(patch, handed_out))
        try:
            outcome = path(calls)
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
    runs: dict[int, int] = {}
    found.facts = {
        "releases": [
            (
                runs.setdefault(id(release.run), len(runs)),
                release.of_pass,
                release.exact.shape,
                release.sensitivity,
                release.share,
                release.scale,
                release.grid,
                None if release.mask is None else release.mask.tobytes(),
            )
            for release in found.releases
        ],
        "warnings": [(one.category.__name__, str(one.message)) for one in warned],
        "calls": calls.list,
        **facts_of(outcome, "outcome"),
    }
    return found


def compare(one: Seen, other: Seen, most: float = 2.0) -> None:
    """Only sums differ, each by at most ``most`` of what is stated; 2 for a row that is replaced."""
    names = sorted(set(one.facts) | set(other.facts))
    differing = {
        name: (one.facts.get(name), other.facts.get(name))
        for name in names
        if one.facts.get(name) != other.facts.get(name)
    }
    assert not differing, f"private rows decide {differing}"
    moved = 0.0
    for mine, theirs in zip(one.releases, other.releases, strict=True):
        distance = float(np.linalg.norm(mine.exact - theirs.exact))
        assert distance <= most * mine.sensitivity, distance / mine.sensitivity
        moved += (distance / mine.scale) ** 2
    assert math.sqrt(moved) <= most * one.stated * (1 + 1e-12)


def facts_of(value: Any, name: str) -> dict[str, Any]:
    """Everything that can be reached from an object by attributes and items, by path."""
    facts: dict[str, Any] = {}
    _collect(value, name, facts, {})
    return facts


def _collect(value: Any, name: str, facts: dict[str, Any], known: dict[int, Any]) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        facts[name] = (value.dtype.str, value.shape, value.tobytes())
    elif value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        facts[name] = repr(value)
    elif id(value) in known or isinstance(value, Calls):
        facts[name] = type(value).__name__
    else:
        known[id(value)] = value
        facts[name] = type(value).__name__
        for key, part in _parts(value):
            _collect(part, f"{name}{key}", facts, known)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if hasattr(value, "detach"):
        return [(".numpy()", value.detach().cpu().numpy())]
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, (list, tuple, np.ndarray)):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [("[sorted]", sorted(map(repr, value)))]
    if isinstance(value, type) or callable(value):
        return []
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    held = {slot: getattr(value, slot) for slot in slots if hasattr(value, slot)}
    return [(f".{key}", part) for key, part in (held | getattr(value, "__dict__", {})).items()]
