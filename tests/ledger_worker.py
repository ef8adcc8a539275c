"""What the processes of ``tests/unit/privacy/test_ledger_processes.py`` do to one ledger."""

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, PrivacyLedger


class Attempts:
    """Charges the same event again and again."""

    def __init__(self, path: Path, noise_multiplier: float) -> None:
        self.ledger = PrivacyLedger(path)
        self.event = GaussianEvent(noise_multiplier, 1)

    def __call__(self, dataset: str) -> int | None:
        """The number of the charge, or None where the budget does not allow it."""
        try:
            return self.ledger[dataset].charge(self.event, neighboring="add_or_remove_one").id
        except BudgetExceededError:
            return None


def until_refused(pipe: Connection, *ledger, dataset: str = "a") -> None:
    """Say that it is ready, wait for the starting shot, and tell the number of each charge."""
    attempt = Attempts(*ledger)
    pipe.send("ready")
    pipe.recv()
    while (number := attempt(dataset)) is not None:
        pipe.send(number)


def of_a_new_data_set(pipe: Connection, *ledger) -> None:
    until_refused(pipe, *ledger, dataset="b")


def on_demand(pipe: Connection, *ledger) -> None:
    """Charge each data set that is named, at the time that is named with it."""
    attempt = Attempts(*ledger)
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        dataset, at = asked
        while time.monotonic() < at:
            pass
        pipe.send(attempt(dataset))


def once_and_crash(pipe: Connection, *ledger) -> None:
    Attempts(*ledger)("a")
    os.kill(os.getpid(), signal.SIGKILL)


def before_and_after_a_fork(pipe: Connection, *ledger) -> None:
    attempt = Attempts(*ledger)
    attempt("a")
    child = os.fork()
    attempt("a")
    if child:
        assert os.waitpid(child, 0)[1] == 0
        attempt("a")
    else:
        os._exit(0)
