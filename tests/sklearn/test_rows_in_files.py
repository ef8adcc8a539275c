"""What takes rows in files besides ``fit`` and ``predict`` of heads: scalers, scores and evaluations."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.datasets import open_rows
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import NoisyScaler

pytestmark = pytest.mark.filterwarnings("ignore:random_state")

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((3000, 4)) + 3).round(3)
Y = (X[:, 0] > 3).astype(int)
PERSONS = np.arange(3000) // 3
FRAME = pd.DataFrame(X, columns=list("abcd"))
WRITERS = {
    "rows.parquet": lambda frame, path: frame.to_parquet(path, row_group_size=700),
    "rows.csv": lambda frame, path: frame.to_csv(path, index=False),
    "rows.feather": lambda frame, path: frame.to_feather(path),
}


@pytest.fixture(params=WRITERS)
def path(request, tmp_path):
    path = tmp_path / request.param
    WRITERS[request.param](FRAME.assign(y=Y, who=PERSONS), path)
    return path


@pytest.mark.parametrize("given", [{}, {"bounds": (0, 6)}, {"bounds": (0, 6), "with_std": False}])
def test_a_scaler_is_that_of_rows_in_memory(path, given):
    scaler = NoisyScaler(epsilon=1.0, random_state=0, **given)
    wanted = NoisyScaler(epsilon=1.0, random_state=0, **given).fit(FRAME)
    scaler.fit(open_rows(path, label="y", exclude=["who"]))
    np.testing.assert_array_equal(scaler.mean_, wanted.mean_)
    assert (scaler.scale_ is None) == (wanted.scale_ is None)
    if scaler.scale_ is not None:
        np.testing.assert_array_equal(scaler.scale_, wanted.scale_)
    np.testing.assert_array_equal(scaler.feature_names_in_, FRAME.columns)
    np.testing.assert_array_equal(scaler.transform(FRAME), wanted.transform(FRAME))


@pytest.mark.parametrize("given", [{}, {"bounds": (0, 6)}])
def test_a_scaler_takes_persons_from_files(path, given):
    scaler, wanted = (NoisyScaler(epsilon=3.0, random_state=0, **given) for _ in range(2))
    scaler.fit(open_rows(path, label="y", group="who"))
    wanted.fit(FRAME, groups=PERSONS)
    np.testing.assert_allclose(scaler.mean_, wanted.mean_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("given", [{}, {"bounds": (0, 6)}])
def test_a_scaler_of_a_memory_map(given, tmp_path):
    for dtype in (np.float64, np.float32, np.float16, np.int32):
        np.save(tmp_path / "rows.npy", X.astype(dtype))
        held = np.load(tmp_path / "rows.npy", mmap_mode="r")
        for rows in (held, open_rows(tmp_path / "rows.npy")):
            scaler, wanted = (NoisyScaler(epsilon=1.0, random_state=0, **given) for _ in range(2))
            scaler.fit(rows)
            wanted.fit(X.astype(dtype))
            np.testing.assert_allclose(scaler.mean_, wanted.mean_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("given", [{}, {"bounds": (0, 6)}])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_scaler_refuses_files_of_odd_numbers(given, odd, tmp_path):
    np.save(tmp_path / "rows.npy", np.where(np.equal(X, X[2999, 3]), odd, X))
    with pytest.raises(ValueError, match="contains NaN or infinity; drop those rows"):
        NoisyScaler(epsilon=1.0, **given).fit(open_rows(tmp_path / "rows.npy"))


def test_what_needs_rows_in_memory_says_so(path):
    files = open_rows(path, label="y", exclude=["who"])
    scaler = NoisyScaler(epsilon=1.0, bounds=(0, 6)).fit(files)
    with pytest.raises(TypeError, match=r"^X holds rows in files where rows in memory are needed; pass an"):
        scaler.transform(files)


def test_labels_in_files_are_those_of_scores(path):
    files = open_rows(path, label="y", exclude=["who"])
    clf = MixedDPLogisticRegression(classes=[0, 1], random_state=0).fit(files)
    found, wanted = (
        private_evaluation(clf, *rows, epsilon=1.0, random_state=0) for rows in ([files], [FRAME, Y])
    )
    assert found.log_loss() == wanted.log_loss()
    assert clf.private_score(files, epsilon=1.0) == clf.private_score(FRAME, Y, epsilon=1.0)
    confusion = (clf.private_confusion(*rows, epsilon=1.0) for rows in ([files], [FRAME, Y]))
    np.testing.assert_array_equal(*confusion)
    reg = MixedDPRidge(random_state=0).fit(files)
    assert reg.private_score(files, epsilon=1.0) == reg.private_score(FRAME, Y, epsilon=1.0)
    residuals = {"epsilon": 1.0, "target_bounds": (0, 1), "random_state": 0}
    assert str(private_evaluation(reg, files, **residuals)) == str(
        private_evaluation(reg, FRAME, Y, **residuals)
    )


@pytest.mark.parametrize(
    "model", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_models_of_others_are_evaluated_on_rows_and_groups_in_files(path, model):
    files, terms = open_rows(path, label="y", exclude=["who"]), {"epsilon": 1.0, "random_state": 0}
    model.fit(FRAME, Y)
    by = {"by": FRAME.columns[0], "by_values": [0, 1]}
    for more in ({}, by):
        found, wanted = (private_evaluation(model, *rows, **terms, **more) for rows in ([files], [FRAME, Y]))
        assert str(found) == str(wanted)


def test_persons_in_files_are_those_of_an_evaluation(path):
    files = open_rows(path, label="y", group="who")
    clf = MixedDPLogisticRegression(classes=[0, 1], random_state=0).fit(FRAME, Y)
    found = private_evaluation(clf, files, epsilon=1.0, random_state=0)
    wanted = private_evaluation(clf, FRAME, Y, groups=PERSONS, epsilon=1.0, random_state=0)
    assert found.log_loss() == wanted.log_loss()


def test_rows_without_labels_are_refused_before_the_charge(path):
    files = open_rows(path, exclude=["y", "who"])
    clf = MixedDPLogisticRegression(classes=[0, 1], random_state=0).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"^y=None leaves nothing to evaluate by"):
        private_evaluation(clf, files, epsilon=1.0)
    with pytest.raises(ValueError, match="y"):
        clf.private_score(files, epsilon=1.0)
