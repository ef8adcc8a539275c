"""Dask clusters that lose their workers, chunks or connection during a fit, or never had what it needs."""

import random
import signal

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, resumable
from skmixdp.privacy import PrivacyLedger
from tests.faults.races import lost_workers
from tests.private_names import DaskRows
from tests.rounding import assert_close

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

rng = np.random.default_rng(0)
X, X_PUB = rng.normal(size=(400, 5)), rng.normal(size=(30, 5))
Y, Y_PUB = np.arange(400) % 3, np.arange(30) % 3
#: Sums of rows of unit length in single precision differ by their order; the steps of a fit add up to more.
ROUNDING = 1e-4


def fit(rows, ledger=None, seed=0, **settings):
    head = MixedDPLogisticRegression("adamix", n_steps=4, delta=1e-4, ledger=ledger, random_state=seed)
    return head.set_params(**settings).fit(rows, Y[: len(rows)], X_pub=X_PUB, y_pub=Y_PUB)


@pytest.fixture
def ledger():
    return PrivacyLedger(":memory:").add_dataset("rows", epsilon=3.0, delta=1e-4)


class Cluster:
    """A cluster of workers in this process, which a test starts and stops."""

    def __init__(self, cluster, client):
        self.cluster, self.client, self.workers = cluster, client, []
        self.start()

    def start(self, n_workers=2):
        async def started():
            return await distributed.Worker(self.cluster.scheduler_address, nthreads=1, dashboard=False)

        self.workers += [self.cluster.sync(started) for _ in range(n_workers)]

    def stop(self):
        for worker in self.workers:
            self.cluster.sync(worker.close, nanny=False)
        self.workers.clear()


@pytest.fixture
def cluster():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as workers,
        # A client that is the default leaves its setting behind if it is closed early.
        distributed.Client(workers, set_as_default=False) as client,
        client.as_current(),
    ):
        cluster = Cluster(workers, client)
        yield cluster
        cluster.stop()


@pytest.fixture
def at_pass(monkeypatch):
    """Registers what happens right before a pass of all fits."""

    def register(number, happens):
        source, passes = DaskRows, iter(range(1, 1000))
        answer = source.private_sums

        def private_sums(self, requests):
            if next(passes) == number:
                happens()
            return answer(self, requests)

        monkeypatch.setattr(source, "private_sums", private_sums)

    return register


def chunked(kind="lazy"):
    rows = da.from_array(X, chunks=(50, -1))
    return rows.persist() if kind == "persisted" else rows


@pytest.mark.parametrize("kind", ["lazy", "persisted"])
def test_a_fit_goes_on_when_all_workers_are_replaced(cluster, at_pass, ledger, kind):
    def replaced():
        cluster.stop()
        cluster.start()

    at_pass(3, replaced)
    assert_close(fit(chunked(kind), ledger).coef_, fit(X).coef_, ROUNDING)
    assert [charge.outcome for charge in ledger.charges()] == ["finished"]


def test_a_fit_that_loses_its_cluster_goes_on_within_resumable(cluster, at_pass, ledger, tmp_path):
    def lost():
        cluster.stop()
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1 s"})

    at_pass(4, lost)
    with dask.config.set({"distributed.scheduler.no-workers-timeout": None}):
        with (
            pytest.raises(
                RuntimeError, match=r"run no task for 1 s.* Charge 1 to .*\['rows'\] stays; run the"
            ),
            resumable(tmp_path / "fit"),
        ):
            fit(chunked(), ledger, seed=None)
        cluster.start()
        with resumable(tmp_path / "fit"):
            fit(chunked(), ledger, seed=None)
    assert [charge.outcome for charge in ledger.charges()] == ["finished"]


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize(
    "happens",
    [
        lambda cluster: cluster.client.restart(wait_for_workers=False),
        lambda cluster: cluster.client.close(),
        lambda cluster: cluster.cluster.close(),
    ],
    ids=["restarted", "client closed", "cluster closed"],
)
def test_a_lost_cluster_is_an_error_that_says_what_was_charged(cluster, at_pass, ledger, happens, number):
    at_pass(number, lambda: happens(cluster))
    said = r"X is a Dask array whose cluster was closed .* stays; another fit is another charge, unless .*\."
    with pytest.raises(RuntimeError, match=said):
        fit(chunked(), ledger)
    assert [charge.outcome for charge in ledger.charges()] == ["failed: LostRowsError"]


def test_a_client_that_was_closed_before_the_fit_is_refused(ledger):
    said = "X is a Dask array and Dask's client is closed; open a "
    with dask.config.set(scheduler="dask.distributed"), pytest.raises(ValueError, match=said):
        fit(chunked(), ledger)
    assert not ledger.charges()


def test_what_is_lost_before_the_charge_is_not_charged(cluster, ledger):
    scattered = cluster.client.scatter(X)
    rows = da.from_delayed(dask.delayed(scattered), X.shape, float)
    cluster.stop()
    cluster.start()
    with pytest.raises(RuntimeError, match=r"lost chunks .* No ledger was charged; fit again\."):
        fit(rows, ledger)
    assert not ledger.charges()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_all_workers_are_killed_at_random_moments():
    row = lost_workers(4, random.Random(0), everyone=True)
    assert row.rounds == 4 and row.findings == []


@pytest.mark.parametrize("kind", [RuntimeError, OSError, ValueError, AssertionError])
def test_a_chunk_that_raises_passes_no_text_on(cluster, ledger, kind):
    def third(chunk, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            raise kind(f"secret {chunk[0, 0]}")
        return chunk

    with pytest.raises(ValueError, match="a chunk of X ends with an error that is left out") as caught:
        fit(chunked().map_blocks(third, dtype=float), ledger)
    assert "secret" not in str(caught.value) and caught.value.__suppress_context__
    assert not ledger.charges()


def test_workers_that_come_and_go_change_no_sum(cluster, at_pass, ledger):
    def changed():
        cluster.start(1)
        cluster.client.retire_workers([cluster.workers[0].address])

    at_pass(2, changed)
    assert_close(fit(chunked("persisted"), ledger).coef_, fit(X).coef_, ROUNDING)
    assert [charge.outcome for charge in ledger.charges()] == ["finished"]


def test_rows_that_another_client_persisted_are_computed_by_it(cluster, ledger):
    rows = chunked("persisted")
    with distributed.Client(cluster.cluster, set_as_default=False) as second, second.as_current():
        assert_close(fit(rows, ledger).coef_, fit(X).coef_, ROUNDING)
