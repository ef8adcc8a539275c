"""A ledger that many processes charge at once, some of which are killed."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skmixdp.privacy import GaussianEvent, PrivacyLedger, mu_of_budget

WORKER = """
import sys
from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, PrivacyLedger

ledger = PrivacyLedger(sys.argv[1])
event = GaussianEvent(float(sys.argv[2]), 1)


def attempt(dataset):
    try:
        return str(ledger[dataset].charge(event, neighboring="add_or_remove_one").id)
    except BudgetExceededError:
        return "refused"


print("ready", flush=True)
"""
UNTIL_REFUSED = (
    WORKER
    + """
sys.stdin.readline()  # the starting shot
while (said := attempt("a")) != "refused":
    print(said, flush=True)
"""
)
ON_DEMAND = (
    WORKER
    + """
for line in sys.stdin:
    print(attempt(line.strip()), flush=True)
"""
)


def start(code, path, n_charges, budget=3.0):
    """A process whose charges fit exactly ``n_charges`` times into the budget."""
    sigma = math.sqrt(n_charges) / mu_of_budget(budget, 1e-5)
    command = [sys.executable, "-c", code, str(path), repr(sigma)]
    root = Path(__file__).parents[3]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.sqlite"
    PrivacyLedger(path).add_dataset("a", epsilon=3.0, delta=1e-5)
    return path


@pytest.mark.parametrize(
    ("n_processes", "n_charges"), [(3, 200), pytest.param(8, 1000, marks=pytest.mark.slow)]
)
def test_nothing_is_lost_or_spent_twice_when_processes_race_and_one_is_killed(path, n_processes, n_charges):
    processes = [start(UNTIL_REFUSED, path, n_charges) for _ in range(n_processes)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * n_processes
    # The first is ahead by 20 charges that it was told of, races, and is killed in the middle of it.
    doomed, told = processes[0], []
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
        told = told or [doomed.stdout.readline() for _ in range(20)]
    time.sleep(3e-4 * n_charges)
    doomed.send_signal(signal.SIGKILL)
    told += doomed.communicate()[0].splitlines()
    assert doomed.returncode == -signal.SIGKILL
    ended = [(process, *process.communicate(timeout=300)) for process in processes[1:]]
    for process, _, errors in ended:
        assert process.returncode == 0, errors
    # On few cores one may come too late for any charge; most do not, or there was no race.
    assert sum(bool(out) for _, out, _ in ended) >= n_processes // 2
    told += [number for _, out, _ in ended for number in out.splitlines()]
    ledger = PrivacyLedger(path)
    recorded = [charge.id for charge in ledger["a"].charges()]
    # As many charges as the budget holds, neither one more nor one fewer.
    assert recorded == list(range(1, n_charges + 1))
    assert ledger["a"].account.n_charges == n_charges
    assert ledger["a"].spent == pytest.approx(3.0) and ledger["a"].spent <= 3.0
    # Each is known to the one process that made it, but for one that died before it could say so.
    assert len(told) == len(set(told)) >= n_charges - 1
    assert {int(number) for number in told} <= set(recorded)


def test_exactly_one_of_two_processes_gets_the_last_of_a_budget(path):
    processes = [start(ON_DEMAND, path, 1) for _ in range(2)]
    assert [process.stdout.readline().strip() for process in processes] == ["ready"] * 2
    ledger = PrivacyLedger(path)
    winners = []
    for number in range(20):
        dataset = f"data set {number}"
        ledger.add_dataset(dataset, epsilon=3.0, delta=1e-5)
        order = processes if number % 2 else processes[::-1]
        for process in order:
            process.stdin.write(f"{dataset}\n")
            process.stdin.flush()
        answers = [process.stdout.readline().strip() for process in processes]
        assert answers.count("refused") == 1, answers
        winners.append(answers.index("refused"))
        assert len(ledger[dataset].charges()) == 1
    assert set(winners) == {0, 1}  # otherwise there was no race
    for process in processes:
        process.communicate()


def test_a_crash_after_the_charge_keeps_it(path):
    code = WORKER + "attempt('a'); import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    process = start(code, path, 2)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert len(PrivacyLedger(path)["a"].charges()) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_a_forked_process_opens_its_own_connection(path):
    code = (
        WORKER
        + """
import os
attempt("a")
child = os.fork()
attempt("a")
if child:
    assert os.waitpid(child, 0)[1] == 0
    attempt("a")
"""
    )
    process = start(code, path, 10)
    process.communicate()
    assert process.returncode == 0
    assert len(PrivacyLedger(path)["a"].charges()) == 4


@pytest.mark.slow
def test_processes_may_open_a_new_file_at_once(tmp_path):
    path = tmp_path / "new.sqlite"
    processes = [start(UNTIL_REFUSED.replace('"a"', '"b"'), path, 30) for _ in range(2)]
    # Whoever comes first makes the tables; nobody knows the data set.
    for process in processes:
        out, _ = process.communicate()
        assert out == "ready\n" and process.returncode == 1
    ledger = PrivacyLedger(path)
    assert ledger.report().accounts == ()
    data_set = ledger.add_dataset("b", epsilon=3.0, delta=1e-5)
    data_set.charge(GaussianEvent(20.0, 1), neighboring="add_or_remove_one")
