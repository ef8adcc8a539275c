"""From a configuration to units of work: one method on one split, at all of its budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from .methods import ADAPTERS

#: Columns of the results that name a fit, besides its setting.
KEYS = ("data", "start", "shots", "seed", "method", "epsilon")

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Unit:
    """What is fitted in one go. None where it makes no difference to the method.

    Attributes
    ----------
    data, method : str
        Names in the configuration.
    start : str or None
        Where training starts.
    shots : int or None
        Public rows of each class.
    seed : int or None
        Of the split and the noise.
    epsilons : tuple of float
        Budgets; empty for a method without.
    """

    data: str
    method: str
    start: str | None
    shots: int | None
    seed: int | None
    epsilons: tuple[float, ...]

    def key(self, epsilon: float | None) -> dict[str, str]:
        """The texts by which the results name one of its fits."""
        values = (self.data, self.start, self.shots, self.seed, self.method, epsilon)
        texts = (
            "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
            for value in values
        )
        return dict(zip(KEYS, texts, strict=True))


def units(config: Config, profiles: Sequence[str], only: Sequence[str] | None = None) -> list[Unit]:
    """All units of some profiles, each once.

    One seed comes after the other, so that an interrupted run leaves whole seeds. A data set's units
    follow each other, so that it is read once for each seed.

    Parameters
    ----------
    config : mapping
        The configuration.
    profiles : sequence of str
        Entries of its profiles.
    only : sequence of str or None
        The methods to keep; None keeps all.

    Raises
    ------
    ValueError
        If the configuration lacks what a profile names, or no profile has a method of ``only``.
    """
    for profile in profiles:
        if profile not in config["profiles"]:
            raise ValueError(f"profile {profile!r} is none of {', '.join(config['profiles'])}.")
    entries = [entry for profile in profiles for entry in config["profiles"][profile]]
    for name in only or ():
        if not any(name in entry["methods"] for entry in entries):
            raise ValueError(f"profile {', '.join(profiles)} has no method {name!r}.")
    budgets: dict[Unit, dict[float, None]] = {}
    for entry in entries:
        for name in entry["methods"]:
            if only is not None and name not in only:
                continue
            adapter = ADAPTERS[_known(config, "methods", name)["adapter"]]
            own = {key: entry[f"{key}s"] if key in adapter.varies else [None] for key in ("start", "seed")}
            own["shots"] = entry["shots"] if "shots" in adapter.varies else [None]
            for data, seed, shots, start in product(entry["data"], own["seed"], own["shots"], own["start"]):
                _known(config, "data", data)
                unit = Unit(data, name, start, shots, seed, ())
                found = budgets.setdefault(unit, {})
                found.update(dict.fromkeys(map(float, entry["epsilons"])) if adapter.private else {})
    places = {name: place for place, name in enumerate(config["data"])}
    ordered = sorted(budgets, key=lambda unit: (-1 if unit.seed is None else unit.seed, places[unit.data]))
    return [replace(unit, epsilons=tuple(budgets[unit])) for unit in ordered]


def left_over(unit: Unit, done: set[tuple[str, ...]]) -> Unit | None:
    """The part of a unit whose results are not there yet; None if all are."""
    wanted: Sequence[float | None] = unit.epsilons or (None,)
    missing = [epsilon for epsilon in wanted if tuple(unit.key(epsilon).values()) not in done]
    return replace(unit, epsilons=tuple(e for e in missing if e is not None)) if missing else None


def _known(config: Config, section: str, name: str) -> Mapping[str, Any]:
    if name not in config[section]:
        raise ValueError(
            f"{section} has no {name!r}, which a profile names; it has {', '.join(config[section])}."
        )
    entry: Mapping[str, Any] = config[section][name]
    return entry
