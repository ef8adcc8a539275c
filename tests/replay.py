"""Replays what a fit released in a fit to neighbouring rows: nothing else that anybody sees may then differ.

A fit is run twice. The second run, on neighbouring rows, gets the noisy arrays of the first one in place of
its own, and draws the same batches and directions. Whatever still differs, a warning, an attribute, the order
of callbacks, the releases that share a pass, tells of the private rows, and no noise covers it. The sums may
differ by as much as was stated of them.

Rows may also stand elsewhere. Coins and batches then travel with them. The number of rows is public and stays
what it is: where a row is removed, those after it move up, and the last place holds a row that takes no part.
"""

import inspect
import io
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from itertools import count, zip_longest
from typing import Any

import numpy as np
import scipy.sparse as sp

from skmixdp.privacy import noise
from tests.noise import Release, watch
from tests.private_names import PANEL_ROWS, Request, draw_batch, from_device, recorded_releases

#: How far the rounding of all rows' terms may move a sum whose rows stand elsewhere, in sensitivities.
_LAST_BITS = 1e-4
#: Letters of a fact in a message.
_SHOWN = 300


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
    terms : list of dict
        For each request that rows answered, by number of a row that took part: its place in a block, the size
        of the block, its products and what it contributed, bit for bit.
    facts : dict
        By name, what must not depend on private rows but through the releases.
    failed : bool
        Whether the run ended with an error, which is a fact too.
    """

    releases: list[Release]
    terms: list[dict[int, Any]]
    facts: dict[str, Any] = field(default_factory=dict)
    failed: bool = False

    @property
    def stated(self) -> float:
        """The mu of zeroing out a row that the noise covers, if no batch is drawn."""
        return math.sqrt(sum((r.sensitivity / r.scale) ** 2 for r in self.releases))


#: What runs a fit: it gets the callback, and returns everything that comes out.
Path = Callable[[Calls], Any]

#: Forms in which rows are held.
FORMS = {
    "dense": np.asarray,
    "sparse": sp.csr_array,
    "float32": lambda rows: np.float32(np.clip(rows, -1e38, 1e38)),
}


def without(n_rows: int, row: int) -> np.ndarray:
    """The places where the rows of a data set stood before ``row`` was moved to the end."""
    return np.append(np.delete(np.arange(n_rows), row), row)


def travelling(places: np.ndarray) -> Callable[..., Any]:
    """What draws batches and coins of rows that stand elsewhere: each row has what it had at its place."""
    before = np.argsort(places)

    def draw(sampling, n_rows, source, members):
        batch = draw_batch(sampling, n_rows, source, None if members is None else members[before])
        return None if batch is None else replace(batch, taken=batch.taken[places])

    return draw


def seen(
    monkeypatch: Any,
    path: Path,
    earlier: Seen | None = None,
    *,
    each_row: bool = True,
    draws: int = 0,
    places: np.ndarray | None = None,
) -> Seen:
    """Run a path, and hand out the noisy arrays of an earlier run, if one is given.

    The terms of single rows are kept if ``each_row``, which is not for Dask arrays: workers visit their rows.
    No rows are then visited by compiled loops. Runs with the same number of ``draws`` draw the same batches.
    ``places`` (n_rows,) are where the rows, or persons, stand in the earlier run; None is the same places.
    """
    keys, calls = count(), Calls()
    terms: list[dict[int, Any]] = []

    def handed_out(release: Release, log: list[Release]) -> np.ndarray:
        if earlier is None or len(log) >= len(earlier.releases):
            return release.noisy
        known = earlier.releases[len(log)].noisy
        return known if known.shape == release.noisy.shape else release.noisy

    def generator(seed: int | None) -> np.random.Generator:
        return np.random.default_rng([next(keys), draws, 0 if seed is None else seed])

    def listener(request: Request) -> Request:
        return _heard(request, terms)

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True, action="always") as warned:
        patch.setattr(noise, "_generator_of", generator)
        if places is not None:
            for module in [each for name, each in sys.modules.items() if name.startswith("skmixdp")]:
                if vars(module).get("draw_batch") is draw_batch:
                    patch.setattr(module, "draw_batch", travelling(places))
        found = Seen(watch(patch, handed_out, listener if each_row else None), terms)
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
            try:
                outcome = path(calls)
            except Exception as error:
                found.failed, outcome = True, f"{type(error).__name__}: {error}"
    runs: dict[int, int] = {}
    found.facts = {
        "releases": [
            (
                *(runs.setdefault(id(release.run), len(runs)), release.of_pass, release.exact.shape),
                *(release.sensitivity, release.share, release.scale, release.grid),
            )
            for release in found.releases
        ],
        "warnings": [(one.category.__name__, str(one.message)) for one in warned],
        "calls": calls.list,
        "printed": printed.getvalue(),
        **facts_of(outcome, "outcome"),
    }
    return found


def _heard(request: Request, terms: list[dict[int, Any]]) -> Request:
    """The request, which lists what each row contributes to it."""
    if request.observe is not None:  # it records the rows' own losses
        return request
    heard: dict[int, Any] = {}
    terms.append(heard)
    mask = request.batch.mask

    def observe(rows, block, Z, contribution):
        parts = [np.asarray(from_device(part)) for part in (Z, *contribution) if part is not None]
        size = len(parts[0])
        numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        joint = np.concatenate([part.reshape(size, -1).astype(np.float64) for part in parts], axis=1)
        joint = np.ascontiguousarray(joint)
        bits = joint.view(f"V{joint.itemsize * joint.shape[1]}")[:, 0]  # of a whole row
        kept = np.arange(size) if mask is None else np.flatnonzero(mask[numbers])
        heard.update(
            zip(numbers[kept].tolist(), ((place, size, bits[place].tobytes()) for place in kept), strict=True)
        )

    return replace(request, observe=observe)


def compare(one: Seen, other: Seen, row: int, most: float = 2.0, places: np.ndarray | None = None) -> None:
    """Only sums differ, each by at most ``most`` of what is stated; 2 for a row that is replaced.

    Where the row takes no part, sums do not differ at all. The terms of other rows are the same everywhere.
    With ``places``, see :func:`seen`, all panels of rows may be rounded otherwise, by as much as is stated of
    one, and terms are not compared, whose last bits follow from the place in a block.
    """
    differing = [
        f"{name}: {_difference(one.facts.get(name), other.facts.get(name))}"
        for name in sorted(one.facts.keys() | other.facts.keys())
        if one.facts.get(name) != other.facts.get(name)
    ]
    assert not differing, "\n".join(["private rows decide", *differing])
    assert len(one.terms) == len(other.terms)
    for mine, theirs in zip(one.terms, other.terms, strict=True) if places is None else ():
        changed = {n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n)} - {row}
        assert not changed, f"a row decides what rows {sorted(changed)} contribute"
    moved = 0.0
    for mine, theirs in zip(one.releases, other.releases, strict=True):
        masks = [mine.mask, theirs.mask]
        if places is not None and theirs.mask is not None:
            masks[1] = theirs.mask[np.argsort(places)]
        masks = [None if mask is None else np.delete(mask, row) for mask in masks]
        assert np.array_equal(*masks), "other rows take part"
        distance = float(np.linalg.norm(mine.exact - theirs.exact))
        if places is not None:
            n_panels = 1 if mine.mask is None else -(-len(mine.mask) // PANEL_ROWS)
            distance = max(distance - n_panels * mine.rounding - _LAST_BITS * mine.sensitivity, 0.0)
        elif mine.mask is not None and not mine.mask[row] and not theirs.mask[row]:
            assert mine.exact.tobytes() == theirs.exact.tobytes(), "a row that takes no part moves a sum"
        assert distance <= most * mine.sensitivity, distance / mine.sensitivity
        moved += (distance / mine.scale) ** 2
    assert math.sqrt(moved) <= most * one.stated * (1 + 1e-12)


def check_neighbours(
    monkeypatch: Any, one: Path, other: Path, row: int, most: float = 2.0, *, each_row: bool = True
) -> Seen:
    """Replay a path in that of its neighbour, which shows nothing else. Returns what was seen first."""
    first = seen(monkeypatch, one, each_row=each_row)
    assert not first.failed, first.facts["outcome"]
    assert first.releases
    compare(first, seen(monkeypatch, other, first, each_row=each_row), row, most)
    return first


def shown(model: Any, entry: Any = None) -> tuple[Any, str, Any]:
    """A fitted model, its report, and its charges to a data set of a ledger."""
    vars(model).pop("per_instance_", None)  # private, as it says
    model.ledger = None  # has times and the path of a file
    charges = None if entry is None else [(charge.event, charge.description) for charge in entry.charges()]
    return model, str(model.privacy_), charges


def released(
    monkeypatch: Any, fit: Callable[[], Any], absent: np.ndarray, replayed: list[Release] | None = None
) -> tuple[list[Release], Any]:
    """The releases of a fit without the absent rows; ``replayed`` ones are handed out instead of its own."""
    replay = None if replayed is None else lambda release, log: replayed[len(log)].noisy
    with monkeypatch.context() as patch, warnings.catch_warnings(action="ignore"):
        log = watch(patch, replay)
        with recorded_releases(absent):
            return log, fit()


def check_sensitivities(monkeypatch: Any, fit: Callable[[], Any], n_rows: int, *, more_than: int) -> None:
    """Zeroing out the first row moves each of many releases of a fit by at most its sensitivity."""
    full, _ = released(monkeypatch, fit, np.zeros(n_rows, bool))
    without, _ = released(monkeypatch, fit, np.arange(n_rows) == 0, full)
    assert len(full) == len(without) > more_than
    for one, other in zip(full, without, strict=True):
        assert one.sensitivity == other.sensitivity
        assert np.linalg.norm(one.exact - other.exact) <= one.sensitivity


def _difference(one: Any, other: Any) -> str:
    """The first difference of two facts, in a few words."""
    if isinstance(one, list) and isinstance(other, list):
        for place, (mine, theirs) in enumerate(zip_longest(one, other)):
            if mine != theirs:
                return f"[{place}] {_difference(mine, theirs)}"
    return f"{str(one)[:_SHOWN]} and {str(other)[:_SHOWN]}"


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
    if isinstance(value, type) or inspect.isroutine(value):
        return []
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    held = {slot: getattr(value, slot) for slot in slots if hasattr(value, slot)}
    return [(f".{key}", part) for key, part in (held | getattr(value, "__dict__", {})).items()]
