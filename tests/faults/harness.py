"""A forked child does a job, and a fault befalls it: it is killed, cancelled, or cannot write to the disk."""

import ctypes
import errno
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.private_names import InputError

#: Calls that change files or databases. A kill at one of them hits what a kill at any call seldom hits.
SYSTEM_CALLS = frozenset(
    {
        *("open", "write", "flush", "fsync", "close", "truncate", "fchmod", "copyfile", "sendfile"),
        *("rename", "replace", "unlink", "remove", "rmdir", "mkdir", "execute", "savez", "dump"),
    }
)

#: How a child ended that was cancelled, and how one that met an error.
CANCELLED, REFUSED = 3, 4


class Job:
    """Something that keeps results or charges a budget, and what must hold however it ends."""

    name = ""
    size = 200_000
    faults: tuple[str, ...] = (
        "delay",
        "call",
        "system call",
        "cancel",
        "file limit",
        "full disk",
        "read-only",
    )

    def prepare(self, folder: Path) -> None:
        """What is there before the job."""

    def run(self, folder: Path, say: Callable[[str], None]) -> None:
        """Do the job. ``say`` tells the parent something at once, such as that a charge returned."""
        raise NotImplementedError

    def cancelled(self, folder: Path) -> None:
        """What must hold in the process in which the job was cancelled, at once."""

    def check(self, folder: Path, said: list[str]) -> None:
        """What must hold after any end."""

    def again(self, folder: Path, said: list[str]) -> None:
        """Run once more without a fault, from what was left, and check what came out."""


@dataclass(frozen=True)
class Fault:
    """What befalls a child.

    Attributes
    ----------
    kind : {"none", "delay", "call", "system call", "cancel", "file limit", "full disk", "read-only", "clock"}
        ``delay`` kills after ``at`` seconds; ``call`` and ``system call`` kill at the ``at``-th call, or one
        that changes files; ``cancel`` raises KeyboardInterrupt there. ``file limit`` lets no file grow beyond
        ``at`` bytes. ``full disk`` and ``read-only`` are done to the folder by the parent, and ``clock`` by
        the job.
    at : float
        Where it strikes.
    """

    kind: str = "none"
    at: float = 0.0


@dataclass
class Ended:
    """How a child ended."""

    status: int
    said: list[str]
    seconds: float
    output: str
    calls: int = 0
    system_calls: int = 0

    @property
    def was_hit(self) -> bool:
        """Whether the fault struck before the job was done."""
        return "done" not in self.said

    @property
    def code(self) -> int:
        """The exit code, negative for a signal."""
        return os.waitstatus_to_exitcode(self.status)


class _Points:
    """Counts the points of a job, and strikes at one."""

    def __init__(self, fault: Fault) -> None:
        self.fault, self.calls, self.system_calls = fault, 0, 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event == "return":  # nothing happens between the last call within and the return
            return
        self.calls += 1
        at_file = event != "call" and getattr(argument, "__name__", "") in SYSTEM_CALLS
        self.system_calls += at_file
        if self.fault.kind == "call" and self.calls == self.fault.at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault.kind == "system call" and at_file and self.system_calls == self.fault.at:
            os.kill(os.getpid(), signal.SIGKILL)
        # Python looks for signals when a function begins and after a call.
        if self.fault.kind == "cancel" and self.calls >= self.fault.at and event in ("call", "c_return"):
            self.fault = Fault()
            raise KeyboardInterrupt

    @contextmanager
    def watching(self) -> Iterator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def run_child(job: Job, folder: Path, fault: Fault, *, count: bool = False) -> Ended:
    """Fork a child that does a job in a folder while a fault befalls it; wait for its end."""
    control = Path(tempfile.mkdtemp(prefix="faults-"))
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _in_child(job, folder, fault, control, count)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    if fault.kind == "delay":
        while not (control / "said").exists() and time.monotonic() - started < 30:
            time.sleep(1e-4)
        time.sleep(fault.at)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    said = (control / "said").read_text().splitlines() if (control / "said").exists() else []
    ended = Ended(status, said[1:], time.monotonic() - started, (control / "output").read_text())
    for line in said:
        if line.startswith("points "):
            ended.calls, ended.system_calls = map(int, line.split()[1:])
        if line.startswith("took "):
            ended.seconds = float(line.split()[1])
    shutil.rmtree(control)
    return ended


def _in_child(job: Job, folder: Path, fault: Fault, control: Path, count: bool) -> int:
    out = os.open(control / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    heard = os.open(control / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(word: str) -> None:
        os.write(heard, f"{word}\n".encode())

    def say_anywhere(word: str) -> None:
        profile = sys.getprofile()  # to say something is no point of the job
        sys.setprofile(None)
        say(word)
        sys.setprofile(profile)

    say("started")
    random.seed(os.getpid())
    points = _Points(fault)
    started = time.perf_counter()
    if fault.kind == "file limit":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault.at), hard))
    kept = None
    try:
        if count or fault.kind in ("call", "system call", "cancel"):
            with points.watching():
                job.run(folder, say_anywhere)
        else:
            job.run(folder, say)
    except KeyboardInterrupt as error:
        kept = error  # as an interactive session does, with all its frames
        job.cancelled(folder)
        say("cancelled")
    except (OSError, ValueError, InputError) as error:
        say(f"refused {type(error).__name__}: {error}")
        return REFUSED if "\n" not in str(error) else 1
    except SystemExit as error:
        say(f"refused with code {error.code}")
        return REFUSED
    if kept is not None:
        return CANCELLED
    say(f"points {points.calls} {points.system_calls}")
    say(f"took {time.perf_counter() - started}")
    say("done")
    return 0


# -- disks ---------------------------------------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)


def can_mount() -> bool:
    """Whether this process may mount file systems."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder), 4096):
                return True
        except OSError:
            return False


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system in memory of so many bytes, at a folder."""
    _call("mount", b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={size}".encode())
    try:
        yield
    finally:
        _call("umount2", bytes(folder), 2)


def set_read_only(folder: Path, *, on: bool) -> None:
    """Let nothing be written to a mounted file system, or again."""
    remount, read_only = 32, 1
    _call("mount", b"tmpfs", bytes(folder), b"tmpfs", remount | (read_only if on else 0), None)


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def free_but(folder: Path, n_bytes: int) -> None:
    """Fill a file system until so many bytes are left."""
    space = os.statvfs(folder)
    filler = space.f_bavail * space.f_frsize - n_bytes
    with (folder / "filler").open("wb") as file:
        try:
            file.write(b"\0" * max(0, filler))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


# -- what must hold of a database ----------------------------------------------------------


def check_database(path: Path) -> None:
    """The file is whole, and nobody holds its lock."""
    connection = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    finally:
        connection.close()


@dataclass
class Row:
    """A line of the table: a job and a fault, how often it was tried and what was found."""

    job: str
    fault: str
    rounds: int = 0
    hits: int = 0
    findings: list[str] = field(default_factory=list)


def try_job(job: Job, kind: str, n_rounds: int, rng: random.Random) -> Row:
    """Let a fault befall a job at random points, so many times."""
    row = Row(job.name, kind)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        template = Path(name) / "template"
        template.mkdir()
        job.prepare(template)
        counted = _counted(job, template, Path(name) / "counted")
        for number in range(n_rounds):
            folder = Path(name) / f"round{number}"
            at = _point(kind, counted, job, rng)
            try:
                row.hits += _round(job, kind, at, template, folder)
            except Exception:  # whatever a check meets is a finding
                row.findings.append(f"{job.name}, {kind} at {at:g}:\n{traceback.format_exc()}")
            row.rounds += 1
            shutil.rmtree(folder, ignore_errors=True)
    return row


def _counted(job: Job, template: Path, folder: Path) -> Ended:
    """The job without a fault."""
    shutil.copytree(template, folder)
    counted = run_child(job, folder, Fault(), count=True)
    assert not counted.was_hit, f"{job.name} fails without a fault: {counted.said} {counted.output}"
    job.check(folder, counted.said)
    timed = Path(f"{folder}2")
    shutil.copytree(template, timed)
    counted.seconds = run_child(job, timed, Fault()).seconds
    return counted


def _point(kind: str, counted: Ended, job: Job, rng: random.Random) -> float:
    if kind == "delay":
        return rng.uniform(0, counted.seconds)
    if kind == "system call":
        return rng.randint(1, max(1, counted.system_calls))
    if kind in ("file limit", "full disk"):
        least = 1024 if kind == "file limit" else 0  # for what the child tells
        return least + rng.choice([0, rng.randint(0, job.size), rng.randint(0, job.size // 8)])
    return rng.randint(1, counted.calls)


def _round(job: Job, kind: str, at: float, template: Path, folder: Path) -> bool:
    if kind not in ("full disk", "read-only"):
        shutil.copytree(template, folder)
        ended = run_child(job, folder, Fault(kind, at))
        _check_end(kind, ended)
        job.check(folder, ended.said)
        job.again(folder, ended.said)
        return ended.was_hit
    folder.mkdir()
    with small_disk(folder, 64 * 2**20):
        shutil.copytree(template, folder, dirs_exist_ok=True)
        if kind == "read-only":
            set_read_only(folder, on=True)
        else:
            free_but(folder, int(at))
        ended = run_child(job, folder, Fault(kind, at))
        if kind == "read-only":
            set_read_only(folder, on=False)
        else:
            (folder / "filler").unlink()
        _check_end(kind, ended)
        job.check(folder, ended.said)
        job.again(folder, ended.said)
    return ended.was_hit


def _check_end(kind: str, ended: Ended) -> None:
    """A child ended as its fault lets it end: killed, cancelled, with an error of the disk, or done."""
    allowed = {
        **dict.fromkeys(("delay", "call", "system call"), (0, -signal.SIGKILL)),
        "cancel": (0, CANCELLED),
    }.get(kind, (0, REFUSED))
    assert ended.code in allowed, f"ended with {ended.code}: {ended.said} {ended.output}"
