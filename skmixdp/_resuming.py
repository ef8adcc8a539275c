"""Resume an interrupted fit from its released numbers, without a second charge.

What a fit asks of private rows follows from public facts and from the numbers released so far. A fit that
gets the released numbers of an interrupted one therefore comes, without a pass over the rows, to where that
one stopped. A file keeps these numbers: no sum without noise, and no state of the noise.

The file keeps a random key before the fit is charged, and the ledger keeps it with the charge. So a fit that
was interrupted right after its charge finds it.

No release may be drawn twice for one charge, since the mean of two has less noise. So the ledger records each
step right before its noise is added, once. A step that it records and the file does not hold is lost: its
budget is spent, and the fit goes on without it.
"""

import io
import math
import secrets
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple
from functools import partial
from importlib.metadata import version
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import joblib
import numpy as np

from ._engine import LostReleaseError, QueryRequest, Released
from ._utils.process import warn
from ._utils.validation import Kind, check, one_line, shown
from .components.protocols import ReleasedArray
from .estimators._base import current_checkpoint
from .privacy import LedgerDataset

#: Marks a file as a checkpoint.
_APPLICATION = 0x736B6370

_TABLES = """
CREATE TABLE fit (facts TEXT NOT NULL, key TEXT NOT NULL);
CREATE TABLE released (step INTEGER NOT NULL, noise_multiplier REAL NOT NULL, numbers BLOB NOT NULL);
"""

#: Parameters that do not change the queries of a fit.
_FREE = frozenset({"ledger", "verbose", "device"})

_PATH = Kind("a path of a file", lambda value: isinstance(value, (str, PathLike)) and fspath(value) != "")

_UNIT = ReleasedArray(1.0)


@contextmanager
def resumable(path: str | PathLike[str]) -> Iterator[None]:
    """Context manager that keeps the released numbers of one fit in a file, so that it can be resumed.

    If the fit is interrupted, run the same block again. The fit goes on with the step that it was at, without
    a second charge. The file is removed when the block ends without an error, so save the model in it.

    Parameters
    ----------
    path : str or path
        The checkpoint, on a local disk. It is created if it is missing.

    Raises
    ------
    ValueError
        If the file is no checkpoint or that of another fit, for a fit that cannot be resumed, and for a
        second fit in the block. Nothing is charged then.
    RuntimeError
        If another process uses the file, or a release was lost that the fit cannot do without.

    Warns
    -----
    UserWarning
        If the block ends and no fit has run in it in this process.

    Notes
    -----
    Linear heads can be resumed, alone, in a pipeline or as a part of one, if they have a ledger. They cannot
    with zeroth-order algorithms, ``ModelMix``, ``record_per_instance`` or ``random_state``, or by
    :func:`fit_many` and searches (see ``memory=`` there). Private rows must be those of the interrupted fit,
    in the same number. Public rows and parameters must be the same.

    A transformer that is fitted to private rows in the block, such as ``NoisyScaler``, is fitted and charged
    again. Fit it before the block.

    *Guarantee*: that of the fit. The ledger records each step before its noise is added, and refuses to
    record it again. So no step is released twice, not even with copies of the file, unless an earlier copy of
    the ledger's file takes its place. A step that was recorded and whose numbers were lost is left out:
    ``n_iter_`` is then smaller. The file holds released numbers alone, which the guarantee covers, also if
    the fit never ends.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression, resumable
    >>> from skmixdp.privacy import PrivacyLedger
    >>> X, y = load_digits(return_X_y=True)
    >>> folder = Path(tempfile.mkdtemp())
    >>> digits = PrivacyLedger(folder / "ledger.sqlite").add_dataset("digits", epsilon=3.0, delta=1e-5)
    >>> head = MixedDPLogisticRegression(epsilon=1.0, ledger=digits)
    >>> with resumable(folder / "fit.checkpoint"):
    ...     head = head.fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
    ...     head.save(folder / "head.safetensors")
    >>> (folder / "fit.checkpoint").exists()
    False
    """
    check("path", path, _PATH)
    if current_checkpoint.get() is not None:
        raise ValueError(f"resumable({fspath(path)!r}) is within another one; use one block for each fit.")
    with closing(Checkpoint(Path(path).absolute())) as checkpoint:
        token = current_checkpoint.set(checkpoint)
        try:
            yield
        finally:
            current_checkpoint.reset(token)
        checkpoint.finish()


class Checkpoint:
    """The released numbers of one fit, in an SQLite file that is locked until it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        #: Ledger and key of a fit that began in this process.
        self._new: tuple[LedgerDataset, str] | None = None

    def resumed(self, procedures: Sequence[Any]) -> list[Any]:
        """The procedures of fits, of which there may be one, which continues from this file."""
        if len(procedures) != 1:
            raise ValueError(
                f"resumable() is for one fit, and this call has {len(procedures)}; call fit for each, in a "
                "block of its own."
            )
        return [self._followed(procedures[0])]

    def _followed(self, procedure: Any) -> Generator[Any, Any, Any]:
        """The procedure of a fit. The file answers its first queries, and keeps the answers of others."""
        with closing(procedure):
            transaction = next(procedure)
            answers, n_recorded = self._begin(transaction)
            charge = yield transaction
            record = partial(transaction.ledger._record_step, charge)
            step, begun = 0, None
            go_on, answer = procedure.send, charge
            while True:
                try:
                    ask: QueryRequest = go_on(answer)
                except StopIteration as end:
                    return end.value
                mechanism = ask.mechanism
                if begun != (mechanism, mechanism.step):  # a step may have several queries
                    begun, step = (mechanism, mechanism.step), step + 1
                    rounds = iter(answers.get(step, ()))
                    if step > n_recorded:
                        mechanism.before_noise = partial(record, step)
                multiplier = mechanism.noise_scale(_UNIT)
                in_file = next(rounds, None)
                if in_file is not None:
                    if not math.isclose(multiplier, in_file[0], rel_tol=1e-6):
                        raise ValueError(
                            f"{self._path} holds numbers with other noise than this fit would add; remove "
                            "the file to begin a new fit with a charge of its own."
                        )
                    go_on, answer = procedure.send, in_file[1]
                elif step <= n_recorded:
                    lost = LostReleaseError(
                        "the fit was interrupted just when a number was released that it cannot do without, "
                        "and that may not be released again for the same charge; remove "
                        f"{self._path} to begin a new fit."
                    )
                    go_on, answer = procedure.throw, lost
                else:
                    try:
                        go_on, answer = procedure.send, (yield ask)
                    except Exception as error:
                        go_on, answer = procedure.throw, error
                    else:
                        values = (step, multiplier, _to_bytes(answer))
                        self._execute("INSERT INTO released VALUES (?, ?, ?)", values)

    def _begin(self, transaction: Any) -> tuple[dict[int, list[tuple[float, Released]]], int]:
        """The numbers released so far, by step, and the number of steps in the ledger."""
        ledger = transaction.ledger
        if self._connection is not None:
            raise ValueError("resumable() is for one fit, and this is the second; use a block for each fit.")
        if not hasattr(ledger, "_record_step"):
            raise ValueError(
                f"resumable() needs ledger= (now {shown(ledger)}), which records each step; pass a data set "
                "of a PrivacyLedger."
            )
        if transaction.public is None or not transaction.is_private:
            raise ValueError(
                "resumable() is for linear heads without zeroth-order algorithms, ModelMix, "
                "record_per_instance and random_state, since released numbers alone do not tell how such a "
                "fit went; leave them out, or resumable()."
            )
        facts = _hash_of_facts(transaction)
        self._open()
        begun = self._execute("SELECT facts, key FROM fit")
        if not begun:
            begun = [(facts, secrets.token_hex(16))]
            self._execute("INSERT INTO fit VALUES (?, ?)", begun[0])
            self._new = ledger, begun[0][1]
        ((recorded_facts, key),) = begun
        transaction.key = key
        if recorded_facts != facts:
            raise ValueError(
                f"{self._path} is the checkpoint of a fit with other parameters, other public rows or "
                "another number of private rows; pass the same, or remove the file to begin a new fit with a "
                "charge of its own."
            )
        charge = transaction.charge = ledger._charge_of(key)
        n_recorded = 0 if charge is None else ledger._last_step(charge)
        answers: dict[int, list[tuple[float, Released]]] = {}
        for step, multiplier, numbers in self._execute("SELECT * FROM released ORDER BY rowid"):
            try:
                answers.setdefault(step, []).append((multiplier, _from_bytes(numbers)))
            except (ValueError, OSError, TypeError, BadZipFile):
                raise self._foreign() from None
        last = max(answers, default=0)
        if n_recorded < last or (charge is not None and charge.event != transaction.event):
            raise ValueError(
                f"the ledger {ledger!r} does not hold the charge of {self._path} with all its steps; pass "
                "the ledger of the interrupted fit, or remove the file to begin a new fit."
            )
        if n_recorded > last + 1:
            raise ValueError(
                f"{self._path} has {last} steps of a charge whose fit went on to "
                f"step {n_recorded}; pass its latest checkpoint, or remove the file to begin a new fit."
            )
        return answers, n_recorded

    def _open(self) -> None:
        with self._errors_named():
            self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        # In this mode, SQLite holds the write lock until the connection is closed or the process ends.
        self._execute("PRAGMA locking_mode = EXCLUSIVE")
        self._execute("PRAGMA synchronous = FULL")
        self._execute("BEGIN EXCLUSIVE")
        if self._execute("SELECT count(*) FROM sqlite_master") == [(0,)]:
            for statement in _TABLES.split(";"):
                self._execute(statement)
            self._execute(f"PRAGMA application_id = {_APPLICATION}")
        is_ours = self._execute("PRAGMA application_id") == [(_APPLICATION,)]
        self._execute("COMMIT")
        if not is_ours:
            raise self._foreign()

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        assert self._connection is not None
        with self._errors_named():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Convert errors of SQLite into one sentence each."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise RuntimeError(
                    f"another process is at the fit of {self._path}; wait for it, or pass another file."
                ) from None
            message = f"{self._path} cannot be used ({one_line(str(error))}); check its folder and disk."
            raise OSError(message) from None
        except sqlite3.DatabaseError:
            raise self._foreign() from None

    def _foreign(self) -> ValueError:
        return ValueError(f"{self._path} is no checkpoint of a fit, or is damaged; pass another file.")

    def finish(self) -> None:
        """Remove the file, since the block has ended without an error."""
        if self._connection is not None:
            self._path.unlink(missing_ok=True)
            return
        warn(
            f"no fit has run within resumable({str(self._path)!r}) in this process, so nothing was kept; "
            "call fit in the block."
        )

    def close(self) -> None:
        """Close the file for other processes. It is removed if nothing was charged."""
        if self._connection is not None:
            with suppress(OSError, ValueError):  # it stays if the ledger cannot be read
                if self._new is not None and self._new[0]._charge_of(self._new[1]) is None:
                    self._path.unlink(missing_ok=True)
            self._connection.close()


def _hash_of_facts(transaction: Any) -> str:
    """A hash of all public facts that determine, with released numbers, the queries of a fit."""
    estimator, *public = transaction.public
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _FREE}
    counted = transaction.n_units, transaction.unit
    facts = (type(estimator).__name__, parameters, tuple(public), *counted, version("skmixdp"))
    try:
        digest: str = joblib.hash(facts)
    except Exception as error:
        raise ValueError(
            f"resumable() compares parameters by their pickles, and {shown(estimator)} has one that cannot "
            f"be pickled ({one_line(str(error))}); pass another, or leave resumable() out."
        ) from None
    return digest


def _to_bytes(answer: Released) -> bytes:
    file = io.BytesIO()
    stated = np.array([astuple(part) for part in answer.stated], dtype=float)  # None becomes NaN
    np.savez(file, stated, *answer.arrays)
    return file.getvalue()


def _from_bytes(numbers: bytes) -> Released:
    with np.load(io.BytesIO(numbers), allow_pickle=False) as file:
        stated, *arrays = (file[name] for name in file.files)
    parts: list[Any] = [[None if math.isnan(value) else value for value in part] for part in stated.tolist()]
    return Released(tuple(ReleasedArray(*part) for part in parts), tuple(arrays))
