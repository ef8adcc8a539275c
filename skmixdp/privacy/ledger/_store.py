"""The tables of a ledger, in an SQLite file or in memory.

Every charge is one ``BEGIN IMMEDIATE`` transaction. It holds the write lock, across processes and threads,
from reading the sums to committing the new ones. A process that dies in between leaves no change. Commits are
flushed to the disk, so a charge stays charged.
"""

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from ..._utils.process import warn
from ..._utils.validation import one_line
from ._sql import TABLES, UnreadableError

Result = TypeVar("Result")

#: A function that reads or changes the tables through a connection, within a transaction.
Work = Callable[[sqlite3.Connection], Result]

#: Mark of a file as a ledger.
_APPLICATION = 0x736B6D78
#: Version of its tables and of the meaning of their numbers.
_VERSION = 6

#: Seconds to wait for other writers, and after which a warning says so. A charge holds the lock for
#: milliseconds.
_PATIENCE, _SILENCE = 120.0, 2.0
#: Most seconds between two attempts. Their moments are random, so that all waiters are equal. SQLite would
#: wait longer after each attempt, and serve first who came last.
_PAUSE = 0.003

#: Connections from before a fork. They are kept, since SQLite forbids both using and closing them.
_inherited: list[sqlite3.Connection] = []


class _Connection:
    """A connection and the process that it belongs to."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.process = connection, os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid():
            self.connection.close()
        else:
            _inherited.append(self.connection)


class FileStore:
    """Tables in a file with an absolute path, through one connection per process and thread."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self._local = threading.local()
        if create:
            with _errors_named(path):
                opened = _Connection(_connect(path.as_uri() + "?mode=rwc"))
                _set_up(opened.connection, path)

    def transact(self, work: Work[Result], *, write: bool) -> Result:
        """The result of ``work`` in a transaction, which is committed unless ``work`` raises an error."""
        with _errors_named(self.path):
            return _transact(self._connection(), "BEGIN IMMEDIATE" if write else "BEGIN", work, self.path)

    def _connection(self) -> sqlite3.Connection:
        opened: _Connection | None = vars(self._local).get("opened")
        try:
            file = self.path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"the ledger {self.path} does not exist; restore the file, or pass the ledger of these "
                "private rows."
            ) from None
        # An old connection must not charge a file that was moved away and replaced.
        owner = os.getpid(), file.st_dev, file.st_ino
        if opened is None or self._local.owner != owner:
            opened = _Connection(_connect(self.path.as_uri() + "?mode=rw"))
            _transact(opened.connection, "BEGIN", partial(_check, path=self.path), self.path)
            self._local.opened, self._local.owner = opened, owner
        return opened.connection


class MemoryStore:
    """Tables in memory, for the threads of one process."""

    def __init__(self) -> None:
        self._connected = _Connection(_connect("file::memory:"))
        self._lock = threading.RLock()
        _set_up(self._connected.connection, Path(":memory:"))

    def transact(self, work: Work[Result], *, write: bool) -> Result:
        """As for :class:`FileStore`; refused in other processes, where a copy would lose charges."""
        if self._connected.process != os.getpid():
            raise RuntimeError(
                "a ledger in memory cannot be charged from another process; give PrivacyLedger a file."
            )
        with self._lock, _errors_named(None):
            return _transact(self._connected.connection, "BEGIN", work, None)


def _connect(uri: str) -> sqlite3.Connection:
    # Transactions are explicit. Each thread uses its own connection, which another thread may close.
    connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA synchronous = FULL")
    # In kilobytes. Queries read a few pages, so a larger cache for each thread would be wasted.
    connection.execute("PRAGMA cache_size = -256")
    return connection


def _transact(connection: sqlite3.Connection, begin: str, work: Work[Result], path: Path | None) -> Result:
    """The result of ``work``, which is called again when another connection had the file locked."""
    started, is_silent = time.monotonic(), True
    # Not a context manager: an interruption on the way into or out of one would skip its clean-up as long as
    # the traceback exists, which would lock the ledger for all other processes.
    while True:
        try:
            connection.execute(begin)
            result = work(connection)
            connection.execute("COMMIT")
            return result
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - started
            if "locked" not in str(error) or waited > _PATIENCE:
                raise
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if is_silent and waited > _SILENCE:
            is_silent = False
            warn(f"the ledger {path} is locked by another program; waiting for up to {_PATIENCE:g} seconds.")
        time.sleep(_PAUSE * secrets.randbelow(1000) / 1000)


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables if there are none. Several processes may try at once."""

    def work(connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        _check(connection, path)

    _transact(connection, "BEGIN IMMEDIATE", work, path)
    # Refused by SQLite while another process uses the file; the mode affects only the speed.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse other files, other versions, and files whose pages or indices are damaged."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise ValueError(f"{path} is a database of something else; give the ledger a file of its own.")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        raise ValueError(
            f"{path} is a ledger of version {version} and this skmixdp knows version {_VERSION}; use the "
            "version of skmixdp that wrote it."
        )
    reason = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if reason != "ok":
        raise UnreadableError.of_damage(reason)


@contextmanager
def _errors_named(path: Path | None) -> Iterator[None]:
    """Convert errors of SQLite into one sentence each, which names the ledger."""
    name = "in memory" if path is None else path
    try:
        yield
    except UnreadableError as error:
        raise ValueError(f"the ledger {name} {error}") from error
    except UnicodeError as error:  # of a text that SQLite quotes in a message
        raise ValueError(f"the ledger {name} {UnreadableError.of_damage(str(error))}") from error
    except sqlite3.OperationalError as error:
        if str(error).startswith("Could not decode"):  # a text that is not UTF-8
            raise ValueError(f"the ledger {name} {UnreadableError.of_damage('a text')}") from error
        raise OSError(
            f"the ledger {name} cannot be used ({one_line(str(error))}); check that its folder exists, is "
            "writable and on a local disk."
        ) from error
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"{path} is not a ledger, or is damaged ({one_line(str(error))}); give the ledger a file of its "
            "own, or restore the file from a copy."
        ) from error
