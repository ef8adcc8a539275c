"""Every kind of file trains the model that Python trains."""

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from skmixdp import (
    AdditiveDPClassifier,
    AdditiveDPPoissonRegressor,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    Typical,
    load,
)
from tests.unit.cli.conftest import (
    SEED,
    WORDS,
    assert_same,
    refuse,
    run,
    save_npy,
    save_npz,
    save_tables,
    table,
    twin,
)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.xz", ".CSV", ".parquet", ".feather"])
def test_a_table_trains_the_model_that_python_trains(ending, data, folder):
    if ending in (".parquet", ".feather"):
        pytest.importorskip("pyarrow")
    rows = save_tables(data, ending)
    assert run("fit", *rows, "--seed", SEED, "--out", "m.joblib", "--quiet") == 0
    model = joblib.load("m.joblib")
    assert_same(model, twin(data, lambda y: WORDS[y], names=["a", "b", "c", "d"]))
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert run("predict", "m.joblib", f"priv{ending}", "--label-column", "kind", "--out", "p.csv") == 0
    predicted = pd.read_csv("p.csv")["prediction"]
    assert (predicted == WORDS[data[1]]).mean() > 0.9


@pytest.mark.parametrize("model", ["linear", "additive"])
def test_scales_are_declared_in_a_file(model, data, folder, capsys):
    Path("scale.json").write_text('{"a": [1.3, 2], "d": [0, 1]}')
    Path("other.json").write_text('{"age": [45, 15]}')
    rows = [*save_tables(data, ".csv"), "--model", model, "--seed", SEED, "--out", "m.joblib", "--quiet"]
    assert run("fit", *rows, "--scale", "scale.json") == 0
    trained = joblib.load("m.joblib")
    assert trained.scale == {"a": Typical(1.3, 2), "d": Typical(0, 1)}
    assert "the scale of 2 columns (declared)" in trained.privacy_.treated_as_public
    capsys.readouterr()
    rows[rows.index("m.joblib")] = "n.joblib"
    rows.remove("--seed")
    rows.remove(SEED)
    assert "names the column 'age'" in refuse(capsys, folder, "fit", *rows, "--scale", "other.json")


@pytest.mark.parametrize("save", [save_npz, save_npy, lambda data: save_npy(data, ".csv")])
def test_arrays_train_the_model_that_python_trains(save, data, folder):
    assert run("fit", *save(data), "--seed", SEED, "--out", "m.joblib", "--quiet") == 0
    model = joblib.load("m.joblib")
    assert_same(model, twin(data))
    assert model.classes_.dtype == data[1].dtype
    rows = next(path for path in folder.iterdir() if path.stem == "priv")
    assert run("predict", "m.joblib", rows, "--out", "p.csv") == 0
    assert pd.read_csv("p.csv")["prediction"].tolist() == model.predict(data[0]).tolist()


def test_all_options_reach_the_estimator(data, folder):
    options = [
        *("--algorithm", "noisy-gd", "--n-steps", 5, "--noise-multiplier", 3, "--delta", "1e-4"),
        *("--neighboring", "replace_one", "--classes", "0,1,2,3"),
    ]
    assert run("fit", *save_npz(data), *options, "--seed", SEED, "--out", "m.joblib", "--quiet") == 0
    with pytest.warns(UserWarning, match="no public row"):
        other = twin(
            data,
            algorithm="noisy-gd",
            epsilon=None,
            delta=1e-4,
            n_steps=5,
            noise_multiplier=3.0,
            neighboring="replace_one",
            classes=[0, 1, 2, 3],
        )
    assert_same(joblib.load("m.joblib"), other)


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ([], AdditiveDPClassifier),
        (["--regression"], AdditiveDPRegressor),
        (["--counts"], AdditiveDPPoissonRegressor),
    ],
)
def test_a_model_can_be_additive(data, folder, flags, kind):
    options = ("--model", "additive", *flags, "--epsilon", 8, "--quiet")
    assert run("fit", *save_npz(data), *options, "--out", "m.safetensors") == 0
    assert type(load("m.safetensors")) is kind
    assert run("predict", "m.safetensors", "priv.npz", "--out", "predicted.csv") == 0


def test_noise_can_be_discrete(data, folder):
    pytest.importorskip("opendp")
    rows = save_npz(data)
    assert run("fit", *rows, "--noise", "discrete", "--n-steps", 2, "--out", "m", "--quiet") == 0
    assert joblib.load("m").privacy_.noise == "discrete"


@pytest.mark.parametrize("private", ["priv.csv", "priv.npz"])
def test_public_columns_may_stand_in_another_order_and_tables_go_with_arrays(private, data, folder):
    save_npz(data)
    of_table = private == "priv.csv"
    save_tables(data, labels=lambda y: WORDS[y] if of_table else y)
    if of_table:
        pd.read_csv("pub.csv")[["kind", "d", "b", "a", "c"]].to_csv("pub.csv", index=False)
    args = ["--private", private, "--public", "pub.csv", "--label-column", "kind"]
    assert run("fit", *args, "--seed", SEED, "--out", "m", "--quiet") == 0
    expected = twin(data, lambda y: WORDS[y], names=["a", "b", "c", "d"]) if of_table else twin(data)
    assert_same(joblib.load("m"), expected)


def test_a_table_may_have_its_labels_in_a_file_and_the_public_rows_none(data, folder):
    X, y = data[:2]
    pd.DataFrame(X, columns=list("abcd")).to_csv("priv.csv", index=False)
    np.save("y.npy", y[:, None])
    args = ["--private", "priv.csv", "--labels", "y.npy", "--classes", "0, 1, 2"]
    assert run("fit", *args, "--seed", SEED, "--out", "m", "--quiet") == 0
    other = MixedDPLogisticRegression(classes=[0, 1, 2], random_state=int(SEED))
    assert_same(joblib.load("m"), other.fit(pd.DataFrame(X, columns=list("abcd")), y))


@pytest.mark.parametrize(
    ("labels", "text", "classes"),
    [
        (lambda y: y > 0, "false,True", [False, True]),
        (lambda y: y.astype(float), "0,1,2", [0, 1, 2]),
        (lambda y: WORDS[y], 'dog, cat,eel,"a, b"', ["a, b", "cat", "dog", "eel"]),
        (lambda y: y, "2,1,0", [0, 1, 2]),
    ],
)
def test_declared_classes_decide_the_type_of_labels(labels, text, classes, data, folder):
    rows = save_tables(data, labels=labels)
    assert run("fit", *rows, "--classes", text, "--out", "m", "--quiet") == 0
    found = joblib.load("m").classes_.tolist()
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]


def test_tables_are_computed_in_double_precision_whatever_their_types(data, folder):
    pytest.importorskip("pyarrow")
    X, y, X_pub, y_pub = data
    for name, rows, targets in (("priv", X, y), ("pub", X_pub, y_pub)):
        frame = table(rows.astype(np.float32), pd.Categorical(WORDS[targets]))
        frame.to_parquet(f"{name}.parquet")
    args = ["--private", "priv.parquet", "--public", "pub.parquet", "--label-column", "kind"]
    assert run("fit", *args, "--seed", SEED, "--out", "m", "--quiet") == 0
    rounded = (X.astype(np.float32).astype(float), y, X_pub.astype(np.float32).astype(float), y_pub)
    assert_same(joblib.load("m"), twin(rounded, lambda y: WORDS[y], names=["a", "b", "c", "d"]))
