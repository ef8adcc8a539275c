"""Years of use in minutes: ``python -m tests.faults.endurance [--fits N] [--charges N]``.

Many small fits run in one process, each charged to a ledger. Memory, threads, open files and connections must
not grow. Then a ledger with many charges must answer at once. The exit code is 1 if a limit is exceeded.
"""

import argparse
import gc
import math
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.algorithms import PAZO
from skmixdp.privacy import GaussianEvent, PrivacyLedger
from tests.private_names import add_charge, write_account

RELATION = "add_or_remove_one"

#: Kilobytes by which memory may grow in 10,000 fits once caches are full: 0.2 kB for each fit.
MEMORY = 2000.0

#: Milliseconds in which a ledger answers, in the median.
ANSWER = 10.0


@dataclass(frozen=True)
class State:
    """What a process holds: memory in kB, threads, open files, and connections to databases."""

    memory: int
    threads: int
    files: int
    connections: int

    @classmethod
    def now(cls) -> "State":
        gc.collect()
        connections = sum(isinstance(thing, sqlite3.Connection) for thing in gc.get_objects())
        threads, files = (len(list(Path(f"/proc/self/{kind}").iterdir())) for kind in ("task", "fd"))
        # Without pages of files, which the kernel takes back when it likes.
        status = Path("/proc/self/status").read_text().split()
        return cls(int(status[status.index("RssAnon:") + 1]), threads, files, connections)


def fits(n_fits: int, folder: Path, *, say: Callable[[str], object] = print) -> list[str]:
    """Small fits of all kinds in one process; what grew."""
    ledger = PrivacyLedger(folder / "ledger.sqlite")
    people = ledger.add_dataset("people", epsilon=1000.0, delta=1e-5)
    X, X_pub = np.split(np.random.default_rng(0).normal(size=(90, 6)), [60])
    y, y_pub = np.arange(60) % 3, np.arange(30) % 3
    settings: dict[str, Any] = {"epsilon": 0.01, "n_steps": 2, "ledger": people}
    kinds = (
        lambda: MixedDPLogisticRegression("adamix", **settings).fit(X, y, X_pub=X_pub, y_pub=y_pub),
        lambda: MixedDPLogisticRegression("noisy-gd", **settings).fit(X, y, X_pub=X_pub, y_pub=y_pub),
        lambda: MixedDPRidge(**settings).fit(X, X[:, 0], X_pub=X_pub, y_pub=X_pub[:, 0]),
        lambda: MixedDPLogisticRegression(PAZO("m"), **settings).fit(X, y, X_pub=X_pub, y_pub=y_pub),
    )
    states: list[State] = []
    started = time.monotonic()
    every = max(1, n_fits // 40)
    for number in range(n_fits):
        # Mostly the default kind; the others take longer.
        model = kinds[number // 10 % len(kinds) if number % 10 == 0 else 0]()
        if number % 50 == 0:
            model.save(folder / "model.safetensors")
            skmixdp.load(folder / "model.safetensors")
            PrivacyLedger(folder / "ledger.sqlite")["people"].report(charges="failed")
        del model
        if (number + 1) % every == 0:
            states.append(State.now())
    # SQLite and NumPy fill caches of fixed size first; the second half shows what grows for good.
    first, last = states[len(states) // 2], states[-1]
    half = states[len(states) // 2 :]
    slope = float(np.polyfit(np.arange(len(half)) * every, [state.memory for state in half], 1)[0]) * 10_000
    say(f"{n_fits} fits in {time.monotonic() - started:.0f} s")
    say(f"  in the middle: {first}\n  at the end:    {last}\n  memory grows by {slope:.0f} kB in 10,000 fits")
    grown = [
        f"{name} grew from {getattr(first, name)} to {getattr(last, name)}"
        for name in ("threads", "files", "connections")
        if getattr(last, name) > getattr(first, name)
    ]
    if slope > MEMORY:
        grown.append(f"memory grows by {slope:.0f} kB in 10,000 fits")
    charges = people.account.n_charges
    return grown + ([] if charges == n_fits else [f"{charges} charges of {n_fits} fits"])


def charged(path: Path, n_charges: int) -> Any:
    """A data set with so many charges of three kinds, made in one transaction."""
    ledger = PrivacyLedger(path)
    people = ledger.add_dataset("people", epsilon=3.0, delta=1e-5)
    ledger.add_dataset("others", epsilon=3.0, delta=1e-5)
    events = [GaussianEvent(noise * math.sqrt(n_charges), 2) for noise in (3.0, 5.0, 9.1)]

    def work(connection: sqlite3.Connection) -> None:
        account = people.ledger._account(connection, "people")
        for number in range(n_charges):
            event = events[number % 3]
            account = account.after(event, RELATION)
            add_charge(
                connection,
                account,
                event,
                time=datetime.now(UTC).isoformat(),
                description="a fit",
                private=True,
                user="someone",
                purpose="",
            )
        write_account(connection, account)

    ledger._store.transact(work, write=True)
    return people, events


def answers(n_charges: int, folder: Path, *, say: Callable[[str], object] = print) -> list[str]:
    """A ledger of many charges answers at once, and its sums are right; what is slow or wrong."""
    people, events = charged(folder / "many.sqlite", n_charges)
    charge = people.charge(events[0], neighboring=RELATION)
    questions: dict[str, Callable[[], object]] = {
        "remaining": lambda: people.remaining,
        "spent": lambda: people.spent,
        "charge": lambda: people.charge(events[0], neighboring=RELATION),
        "outcome": lambda: people._record_outcome(charge, "finished"),
        "status of the data set": lambda: str(people.report(charges="failed")),
        "status of the ledger": lambda: str(people.ledger.report(charges="failed")),
        "open": lambda: PrivacyLedger(folder / "many.sqlite")["people"],
    }
    slow = []
    for name, question in questions.items():
        times = []
        for _ in range(30):
            started = time.perf_counter()
            question()
            times.append(1e3 * (time.perf_counter() - started))
        median = statistics.median(times)
        say(f"  {name}: {median:.2f} ms (slowest of 30: {max(times):.2f} ms)")
        if median > ANSWER:
            slow.append(f"{name} takes {median:.1f} ms")
    return slow + wrong_sums(people, events, n_charges)


def wrong_sums(people: Any, events: list[GaussianEvent], n_charges: int) -> list[str]:
    """How the running sum differs from the exact one by more than its additions round up."""
    account = people.account
    more = account.n_charges - n_charges  # all of them the first event
    counts = [n_charges // 3 + (n_charges % 3 > i) + more * (i == 0) for i in range(3)]
    terms = [Fraction(event.mu(RELATION) ** 2) for event in events]
    exact = sum(count * term for count, term in zip(counts, terms, strict=True))
    error = float((Fraction(account.total) - exact) / exact)
    alone = GaussianEvent(1 / math.sqrt(float(exact)), 1)
    cost = skmixdp.privacy.epsilon_of_event(alone, account.delta, RELATION)
    wrong = []
    if not 0 <= error <= account.n_charges * 2.0**-51:
        wrong.append(f"the sum is off by {error:.1e}")
    if not cost * (1 - 1e-9) <= account.spent <= account.epsilon * (1 + 1e-9):
        wrong.append(f"{account.spent} is spent of a cost of {cost}")
    return wrong


def main() -> int:
    """0 if nothing grows and nothing is slow."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.endurance", description=__doc__)
    parser.add_argument("--fits", type=int, default=10_000, help="default: %(default)s")
    parser.add_argument("--charges", type=int, default=100_000, help="default: %(default)s")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        if options.fits:
            found += fits(options.fits, Path(folder))
        if options.charges:
            print(f"a ledger of {options.charges} charges")
            found += answers(options.charges, Path(folder))
    for finding in found:
        sys.stderr.write(f"{finding}\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
