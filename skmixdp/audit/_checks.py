"""Checks of the input of an audit; each error names the remedy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._utils.validation import COUNT, check, check_table, whole_from

Array = NDArray[Any]


@dataclass(frozen=True)
class AuditRows:
    """Rows and their labels or targets."""

    X: Array
    y: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Any) -> "AuditRows":
        return AuditRows(self.X[index], self.y[index])


#: Fewest fits, and fewest canaries in a single fit; with fewer there is no bound.
_FEWEST_FITS = 10
_FEWEST_CANARIES = 4

#: Fractions of the canaries of one fit for which the attacker guesses; all of them are tried.
_GUESSED = (1 / 2, 1 / 4, 1 / 8, 1 / 16)


def check_fits(n_fits: Any) -> None:
    """Refuse numbers of fits other than 1 and large enough even numbers."""
    check("n_fits", n_fits, COUNT)
    if n_fits > 1 and (n_fits < _FEWEST_FITS or n_fits % 2):
        raise ValueError(f"n_fits={n_fits!r} must be 1 or an even number of at least {_FEWEST_FITS}.")


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


def check_count(n_canaries: Any, n_fits: int, rows: AuditRows | None, known_rows: AuditRows) -> int:
    """The checked number of canaries in a fit."""
    if n_canaries is None:
        default = 1 if n_fits > 1 else min(1000, len(known_rows) // 2)
        n_canaries = default if rows is None else len(rows)
    check("n_canaries", n_canaries, COUNT)
    if rows is not None and n_canaries != len(rows):
        raise ValueError(
            f"n_canaries={n_canaries} and canaries holds {len(rows)} rows; leave n_canaries out."
        )
    if n_fits > 1 and n_canaries != 1:
        raise ValueError(
            f"n_canaries={n_canaries} with n_fits={n_fits}: many fits test one canary; pass 1, or n_fits=1."
        )
    if n_canaries > len(known_rows):
        raise ValueError(
            f"n_canaries={n_canaries} exceeds the {len(known_rows)} rows of X, which they would outnumber; "
            "pass fewer canaries or more rows."
        )
    if n_fits == 1 and n_canaries < _FEWEST_CANARIES:
        raise ValueError(
            f"n_canaries={n_canaries} is too few for one fit; pass at least {_FEWEST_CANARIES}, or more fits."
        )
    return int(n_canaries)


def check_guesses(n_guesses: Any, n_canaries: int, n_fits: int) -> list[int]:
    """The numbers of guesses to try."""
    if n_guesses is None:
        return sorted({2 * max(1, round(share * n_canaries / 2)) for share in _GUESSED})
    if n_fits > 1:
        raise ValueError(f"n_guesses={n_guesses!r} has no effect with many fits; leave it out.")
    check("n_guesses", n_guesses, whole_from(2))
    if n_guesses % 2 or n_guesses > n_canaries:
        raise ValueError(
            f"n_guesses={n_guesses} must be even and at most the number of canaries, {n_canaries}."
        )
    return [int(n_guesses)]
