"""Dask arrays and Dask DataFrames: the workers read the rows, and each row is sent once at most."""

import numpy as np
import pandas as pd
import pytest

from skmixdp import MixedDPLogisticRegression
from skmixdp.preprocessing import NoisyScaler
from tests.asking import request_of
from tests.private_names import RowMap, special_table
from tests.rounding import assert_close

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.normal(size=(600, 4)), columns=["a", "b", "c", "d"])
PUBLIC = pd.DataFrame(rng.normal(size=(60, 4)), columns=["a", "b", "c", "d"])
Y, Y_PUB = np.arange(600) % 2, np.arange(60) % 2


def fit(rows, y=Y):
    return MixedDPLogisticRegression("adamix", random_state=0).fit(rows, y, X_pub=PUBLIC, y_pub=Y_PUB)


def test_a_dask_data_frame_is_fitted_like_a_data_frame():
    chunked = dd.from_pandas(FRAME, npartitions=4)
    head = fit(chunked)
    assert_close(head.coef_, fit(FRAME).coef_, 1e-4)
    assert list(head.feature_names_in_) == [*FRAME]
    np.testing.assert_array_equal(head.predict(chunked).compute(), head.predict(FRAME))
    np.testing.assert_allclose(head.predict_proba(chunked).compute(), head.predict_proba(FRAME), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        head.predict(chunked[["b", "a", "c", "d"]])


def test_columns_of_all_numeric_types_are_numbers():
    frame = FRAME.assign(b=np.arange(600) % 5, c=pd.array(np.arange(600) % 7, dtype="Int64"), d=Y == 1)
    assert_close(fit(dd.from_pandas(frame, npartitions=3)).coef_, fit(frame).coef_, 1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"b": "text"}, r"columns that are no numbers, \['b'\]"),
        ({"b": pd.Timestamp("2026-01-01")}, r"columns that are no numbers, \['b'\]"),
        ({"b": pd.array([None] * 600, dtype="Int64")}, "NaN"),
        ({"b": np.inf}, "NaN or infinity"),
    ],
)
def test_other_columns_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        fit(dd.from_pandas(FRAME.assign(**change), npartitions=2))


def test_empty_chunks_and_unknown_sizes_change_no_sum():
    rows = da.from_array(FRAME.to_numpy(), chunks=(100, -1))
    holes = da.concatenate([rows[:0], rows[:250], rows[:0], rows[250:], rows[:0]])
    unknown = rows[rows[:, 0] > -np.inf]
    W = rng.normal(size=(3, 4))
    for table in (rows, holes, unknown):
        source = special_table(table).private_rows(Y, RowMap(None, False, None), np.dtype(float), exact=False)
        ((sums, _),) = source.private_sums([request_of(W, lambda Z, block: (Z, None))])
        assert_close(sums, W @ FRAME.to_numpy().T @ FRAME.to_numpy(), 1e-12)


def test_what_reads_all_rows_into_this_process_says_so():
    with pytest.warns(
        UserWarning, match="X is a Dask collection, all of whose rows are read into the memory"
    ):
        NoisyScaler(bounds=(-9, 9), random_state=0).fit(dd.from_pandas(FRAME, npartitions=2))


def test_rows_of_this_process_are_sent_once(monkeypatch):
    """The array is in one graph, however many workers there are, and not in that of a pass."""
    distributed = pytest.importorskip("distributed")
    sent = []
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        persist, compute = client.persist, client.compute

        def weighed(task):
            graph = dask.base.collections_to_expr(task).__dask_graph__()
            sent.append(sum(rows.nbytes for rows in arrays_in(list(dict(graph).values()))))

        monkeypatch.setattr(client, "persist", lambda tasks: (weighed(tasks), persist(tasks))[1])
        monkeypatch.setattr(client, "compute", lambda tasks: (weighed(tasks), compute(tasks))[1])
        fit(da.from_array(FRAME.to_numpy(), chunks=(100, -1)))
    assert sum(sent) == FRAME.to_numpy().nbytes


def arrays_in(tasks):
    """Tables of four columns in tasks and what they hold."""
    for task in tasks:
        if isinstance(task, np.ndarray):
            if task.ndim == 2 and task.shape[1] == 4 and len(task) >= 50:
                yield task
        elif isinstance(task, (list, tuple)):
            yield from arrays_in(task)
        elif hasattr(task, "value"):
            yield from arrays_in([task.value])
        elif hasattr(task, "args"):
            yield from arrays_in(task.args)


@pytest.mark.parametrize("part", [np.s_[:-1], np.s_[:, :3], np.s_[:, 0], np.s_[:0]])
def test_chunks_of_other_shapes_than_declared_are_refused(part):
    rows = da.from_array(FRAME.to_numpy(), chunks=(100, -1)).map_blocks(
        lambda chunk: chunk[part], dtype=float
    )
    with pytest.raises(ValueError, match="other numbers of rows and columns than X declares"):
        fit(rows)
