"""Rows of an audit, their numbers, and synthetic ones whose presence is easy to detect."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.validation import COUNT, check, check_table, whole_from

Array = NDArray[Any]

#: Fewest fits, and fewest canaries in a single fit; with fewer there is no bound.
_FEWEST_FITS = 10
_FEWEST_CANARIES = 4

#: Fractions of the canaries of one fit for which the attacker guesses; all of them are tried.
_GUESSED = (1 / 2, 1 / 4, 1 / 8, 1 / 16)

#: Distance of synthetic rows from the mean, relative to that of the farthest known row.
_TIMES_FARTHEST = 3.0

#: Distance of synthetic targets from the mean, in standard deviations of known targets.
_FAR_TARGET = 20.0


@dataclass(frozen=True)
class AuditRows:
    """Rows and their labels or targets."""

    X: Array
    y: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Any) -> "AuditRows":
        return AuditRows(self.X[index], self.y[index])


def check_rows(X: object, y: object, X_name: str, y_name: str, least: int) -> AuditRows:
    """Copies of dense rows with one label or target each."""
    rows, targets = np.array(check_table(X, X_name, minimum=least, finite=False), np.float64), np.array(y)
    check_length(targets, len(rows), y_name)
    return AuditRows(rows, targets)


def check_length(targets: Array, n_rows: int, name: str) -> None:
    """Refuse labels or targets that are not as many as their rows."""
    if targets.ndim == 0 or len(targets) != n_rows:
        length = "no length" if targets.ndim == 0 else f"{len(targets)} entries"
        raise ValueError(f"{name} has {length} and its rows are {n_rows}; pass one label or target for each.")


def check_canaries(canaries: object, known_rows: AuditRows) -> AuditRows:
    """The user's canaries, refused unless they have the shapes of the known rows."""
    if not isinstance(canaries, tuple) or len(canaries) != 2:
        raise TypeError(f"canaries must be None or a tuple (X, y), not {type(canaries).__name__}.")
    rows = check_rows(*canaries, "canaries[0]", "canaries[1]", 1)
    if rows.X.shape[1] != known_rows.X.shape[1] or rows.y.shape[1:] != known_rows.y.shape[1:]:
        raise ValueError(
            f"canaries have {rows.X.shape[1]} features and targets of shape {rows.y.shape[1:]}, the rows "
            f"{known_rows.X.shape[1]} and {known_rows.y.shape[1:]}; pass the same of both."
        )
    return rows


def check_numbers(
    n_fits: Any, n_canaries: Any, n_guesses: Any, canaries: AuditRows | None, known_rows: AuditRows
) -> tuple[int, list[int]]:
    """The number of canaries in a fit, and the numbers of guesses to try."""
    check("n_fits", n_fits, COUNT)
    if n_fits > 1 and (n_fits < _FEWEST_FITS or n_fits % 2):
        raise ValueError(f"n_fits={n_fits!r} must be 1 or an even number of at least {_FEWEST_FITS}.")
    n_rows, n_given = len(known_rows), None if canaries is None else len(canaries)
    if n_canaries is None:
        n_canaries = n_given or (1 if n_fits > 1 else min(1000, n_rows // 2))
    check("n_canaries", n_canaries, COUNT)
    for is_refused, why in (
        (n_given not in (None, n_canaries), f"and canaries holds {n_given} rows; leave n_canaries out"),
        (n_fits > 1 and n_canaries != 1, "with n_fits > 1: many fits test one canary; pass 1, or n_fits=1"),
        (n_canaries > n_rows, f"exceeds the {n_rows} rows of X; pass fewer canaries or more rows"),
        (
            n_fits == 1 and n_canaries < _FEWEST_CANARIES,
            f"is too few for one fit; pass at least {_FEWEST_CANARIES}, or more fits",
        ),
    ):
        if is_refused:
            raise ValueError(f"n_canaries={n_canaries} {why}.")
    if n_guesses is None:
        return int(n_canaries), sorted({2 * max(1, round(share * n_canaries / 2)) for share in _GUESSED})
    if n_fits > 1:
        raise ValueError(f"n_guesses={n_guesses!r} has no effect with many fits; leave it out.")
    check("n_guesses", n_guesses, whole_from(2))
    if n_guesses % 2 or n_guesses > n_canaries:
        raise ValueError(
            f"n_guesses={n_guesses} must be even and at most the number of canaries, {n_canaries}."
        )
    return int(n_canaries), [int(n_guesses)]


def synthetic_rows(
    known_rows: AuditRows, n_rows: int, *, classifier: bool, wrong_labels: bool, rng: np.random.RandomState
) -> AuditRows:
    """At least ``n_rows`` rows far from known ones in random directions, with random labels or far targets.

    ``wrong_labels`` adds each class's mean, and the direction in which rows vary least, under all labels.
    """
    X, y = known_rows.X, known_rows.y
    centre = X.mean(axis=0)
    deviations = X - centre
    farthest = float(np.sqrt(np.max(np.sum(deviations**2, axis=1)))) or 1.0
    d = X.shape[1]
    bases = [np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(-(-n_rows // d))]
    rows = centre + _TIMES_FARTHEST * farthest * np.concatenate(bases)[:n_rows]
    if not classifier:
        side = np.where(rng.randint(2, size=(n_rows, *y.shape[1:])) == 1, 1.0, -1.0)
        targets = y.mean(axis=0) + _FAR_TARGET * (y.std(axis=0) + (y.std(axis=0) == 0)) * side
        return AuditRows(rows, targets)
    if y.ndim == 2:
        return AuditRows(rows, rng.randint(2, size=(n_rows, y.shape[1])))
    classes = np.unique(y)
    labels = classes[rng.randint(len(classes), size=n_rows)]
    if not wrong_labels:
        return AuditRows(rows, labels)
    rare = np.linalg.svd(deviations, full_matrices=False)[2][-1]
    means = [centre + _TIMES_FARTHEST * farthest * rare, centre - _TIMES_FARTHEST * farthest * rare]
    means += [X[y == label].mean(axis=0) for label in classes]
    rows = np.concatenate([rows, np.repeat(means, len(classes), axis=0)])
    return AuditRows(rows, np.concatenate([labels, np.tile(classes, len(means))]))
