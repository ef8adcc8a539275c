"""Two processes that want the last of a budget, and workers of a cluster that are lost."""

import math
import multiprocessing
import os
import random
import signal
import tempfile
import threading
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, PrivacyLedger, mu_of_budget
from tests.faults.harness import Row

EPSILON, DELTA = 3.0, 1e-5


def until_refused(pipe: Connection, path: Path) -> None:
    """Charge the data sets that are named, each until its budget is spent, and tell the charges' numbers."""
    ledger = PrivacyLedger(path)
    while (asked := pipe.recv()) is not None:
        name, event = asked
        numbers = []
        try:
            while True:
                numbers.append(ledger[name].charge(event, neighboring="add_or_remove_one").id)
        except BudgetExceededError:
            pipe.send(numbers)


def race(n_rounds: int, rng: random.Random) -> Row:
    """Two processes race for budgets that hold a few charges; each charge is made once, and none too many."""
    row = Row("ledger: the last of a budget", "race of two processes")
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        path = Path(name) / "ledger.sqlite"
        ledger = PrivacyLedger(path)
        context = multiprocessing.get_context("fork")
        pipes, processes = [], []
        for _ in range(2):
            pipe, theirs = context.Pipe()
            processes.append(context.Process(target=until_refused, args=(theirs, path), daemon=True))
            processes[-1].start()
            pipes.append(pipe)
        for number in range(n_rounds):
            n_charges = rng.choice((1, 1, 1, 2, 3))
            event = GaussianEvent(math.sqrt(n_charges) / mu_of_budget(EPSILON, DELTA), 1)
            dataset = ledger.add_dataset(f"{number}", epsilon=EPSILON, delta=DELTA)
            for pipe in rng.sample(pipes, 2):
                pipe.send((dataset.name, event))
            told = [pipe.recv() for pipe in pipes]
            recorded = [charge.id for charge in dataset.charges()]
            row.rounds += 1
            row.hits += not all(told) if n_charges == 1 else all(told)
            if sorted(told[0] + told[1]) != recorded or len(recorded) != n_charges:
                row.findings.append(f"{n_charges} charges fit, {told} were told and {recorded} recorded")
            if dataset.spent > EPSILON or not math.isclose(dataset.spent, EPSILON, rel_tol=1e-8):
                row.findings.append(f"{dataset.spent} of {EPSILON} are spent")
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join()
    return row


def lost_workers(n_rounds: int, rng: random.Random, *, everyone: bool = False) -> Row:
    """One or all workers of a Dask cluster are killed at a random moment of a fit, which goes on."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    row = Row("fit on a Dask cluster", "all workers are killed" if everyone else "a worker is killed")
    X, X_pub = (
        np.random.default_rng(0).normal(size=(4000, 20)),
        np.random.default_rng(1).normal(size=(60, 20)),
    )
    y, y_pub = np.arange(4000) % 3, np.arange(60) % 3
    settings: dict[str, Any] = {"delta": 1e-4, "n_steps": 30, "random_state": 0}

    def fit(rows: Any, ledger: Any) -> Any:
        head = MixedDPLogisticRegression("adamix", ledger=ledger, **settings)
        return head.fit(rows, y, X_pub=X_pub, y_pub=y_pub).coef_

    expected = fit(X, None)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        ledger = PrivacyLedger(Path(name) / "ledger.sqlite")
        rows = da.from_array(X, chunks=(500, 20))
        for number in range(n_rounds):
            dataset = ledger.add_dataset(f"{number}", epsilon=9.0, delta=1e-4)
            # A cluster for each round: one that has lost a worker may not get another.
            with (
                LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
                Client(cluster) as client,
            ):
                for _ in range(2):  # the first fit takes longer
                    started = time.monotonic()
                    fit(rows, None)
                    seconds = time.monotonic() - started
                victims = sorted(client.run(os.getpid).values())
                victims = victims if everyone else [rng.choice(victims)]
                timer = threading.Timer(rng.uniform(0, seconds), _killed, [victims])
                timer.start()
                try:
                    np.testing.assert_allclose(fit(rows, dataset), expected, rtol=1e-4, atol=1e-5)
                except Exception:
                    row.findings.append(f"the fit failed, or found another head:\n{traceback.format_exc()}")
                row.hits += timer.finished.is_set()
                timer.join()
            row.rounds += 1
            charges = [charge.outcome for charge in dataset.charges()]
            if charges != ["finished"]:
                row.findings.append(f"the ledger holds {charges}")
    return row


def _killed(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)
