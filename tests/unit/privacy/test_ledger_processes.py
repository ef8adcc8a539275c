"""A ledger that many processes charge at once, some of which are killed."""

import math
import multiprocessing
import os
import signal
import tempfile
import time
from multiprocessing import forkserver
from unittest import mock

import pytest

from skmixdp.privacy import GaussianEvent, PrivacyLedger, mu_of_budget
from tests import ledger_worker

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PATIENCE = 300


class Worker:
    """A process whose charges fit exactly ``n_charges`` times into the budget."""

    def __init__(self, job, path, n_charges, budget=3.0):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([ledger_worker.__name__])
        with mock.patch.object(tempfile, "tempdir", "/tmp"):  # the address of its socket has to be short
            forkserver.ensure_running()
        self.pipe, theirs = context.Pipe()
        sigma = math.sqrt(n_charges) / mu_of_budget(budget, 1e-5)
        # A daemon, so that a test that fails leaves nothing to wait for.
        self.process = context.Process(target=job, args=(theirs, path, sigma), daemon=True)
        self.process.start()
        theirs.close()

    def said(self):
        assert self.pipe.poll(PATIENCE)
        return self.pipe.recv()

    def end(self):
        """All that it has said and was not read, and how it ended."""
        said = []
        while True:
            try:
                said.append(self.said())
            except (EOFError, ConnectionResetError):
                break
        self.process.join(PATIENCE)
        return said, self.process.exitcode


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.sqlite"
    PrivacyLedger(path).add_dataset("a", epsilon=3.0, delta=1e-5)
    return path


@pytest.mark.parametrize(
    ("n_processes", "n_charges"), [(3, 100), pytest.param(8, 1000, marks=pytest.mark.slow)]
)
def test_nothing_is_lost_or_spent_twice_when_processes_race_and_one_is_killed(path, n_processes, n_charges):
    workers = [Worker(ledger_worker.until_refused, path, n_charges) for _ in range(n_processes)]
    assert [worker.said() for worker in workers] == ["ready"] * n_processes
    # The first is ahead by 20 charges that it was told of, races, and is killed in the middle of it.
    doomed, told = workers[0], []
    for worker in workers:
        worker.pipe.send("go")
        told = told or [doomed.said() for _ in range(20)]
    time.sleep(3e-4 * n_charges)
    doomed.process.kill()
    rest, code = doomed.end()
    assert code == -signal.SIGKILL
    told += rest
    ended = [worker.end() for worker in workers[1:]]
    assert [code for _, code in ended] == [0] * (n_processes - 1)
    # On few cores one may come too late for any charge; most do not, or there was no race.
    assert sum(bool(said) for said, _ in ended) >= n_processes // 2
    told += [number for said, _ in ended for number in said]
    ledger = PrivacyLedger(path)
    recorded = [charge.id for charge in ledger["a"].charges()]
    # As many charges as the budget holds, neither one more nor one fewer.
    assert recorded == list(range(1, n_charges + 1))
    assert ledger["a"].account.n_charges == n_charges
    assert ledger["a"].spent == pytest.approx(3.0) and ledger["a"].spent <= 3.0
    # Each is known to the one process that made it, but for one that died before it could say so.
    assert len(told) == len(set(told)) >= n_charges - 1
    assert set(told) <= set(recorded)


def test_exactly_one_of_two_processes_gets_the_last_of_a_budget(path):
    workers = [Worker(ledger_worker.on_demand, path, 1) for _ in range(2)]
    assert [worker.said() for worker in workers] == ["ready"] * 2
    ledger = PrivacyLedger(path)
    winners = []
    # On a busy machine one process may win many times in a row; until the other wins, there was no race.
    while len(winners) < 20 or (len(set(winners)) == 1 and len(winners) < 500):
        dataset = f"data set {len(winners)}"
        ledger.add_dataset(dataset, epsilon=3.0, delta=1e-5)
        at = time.monotonic() + 2e-3
        for worker in workers[:: 1 if len(winners) % 2 else -1]:
            worker.pipe.send((dataset, at))
        answers = [worker.said() for worker in workers]
        assert answers.count(None) == 1, answers
        winners.append(answers.index(None))
        assert len(ledger[dataset].charges()) == 1
    assert set(winners) == {0, 1}
    for worker in workers:
        worker.pipe.send(None)
        assert worker.end() == ([], 0)


def test_a_crash_after_the_charge_keeps_it(path):
    assert Worker(ledger_worker.once_and_crash, path, 2).end() == ([], -signal.SIGKILL)
    assert len(PrivacyLedger(path)["a"].charges()) == 1


@pytest.mark.slow
def test_a_forked_process_opens_its_own_connection(path):
    assert Worker(ledger_worker.before_and_after_a_fork, path, 10).end() == ([], 0)
    assert len(PrivacyLedger(path)["a"].charges()) == 4


@pytest.mark.slow
def test_processes_may_open_a_new_file_at_once(tmp_path):
    path = tmp_path / "new.sqlite"
    workers = [Worker(ledger_worker.of_a_new_data_set, path, 30) for _ in range(2)]
    # Whoever comes first makes the tables; nobody knows the data set.
    for worker in workers:
        assert worker.said() == "ready"
        worker.pipe.send("go")
        assert worker.end() == ([], 1)
    ledger = PrivacyLedger(path)
    assert ledger.report().accounts == ()
    data_set = ledger.add_dataset("b", epsilon=3.0, delta=1e-5)
    data_set.charge(GaussianEvent(20.0, 1), neighboring="add_or_remove_one")
