"""``extract``: from images to files that ``fit`` and ``predict`` take."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from PIL import Image

pytest.importorskip("torch", reason="needs the extra features")

from skmixdp.features import TimmFeatures
from tests.rounding import assert_close
from tests.unit.cli.conftest import refuse, run

OPTIONS = json.dumps({"pretrained": False, "image_size": 32})
MODEL = ("--model", "timm:test_resnet", "--options", OPTIONS, "--device", "cpu")
CLASSES = ("cat", "dog")
FIT = ("fit", "--private", "private.npz", "--public", "public.npz", "--out", "head.joblib")


def extract_both(*model):
    for part in ("private", "public"):
        assert run("extract", part, *model, "--out", f"{part}.npz", "--quiet") == 0


def save_classes(folder, n=6, seed=0):
    """A folder with dark cats and bright dogs."""
    rng = np.random.default_rng(seed)
    for k, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(0, 128, (20, 20, 3)) + 127 * k
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{i}.png")


@pytest.fixture
def images(folder):
    save_classes(folder / "private")
    save_classes(folder / "public", seed=1)
    return folder


def test_a_folder_becomes_rows_labels_and_their_origin(images, capsys):
    assert run("extract", "private", *MODEL, "--out", "feats.npz") == 0
    assert capsys.readouterr().out == "feats.npz: 12 rows of 96 features, 12 computed, 0 images skipped\n"
    with np.load("feats.npz", allow_pickle=False) as found:
        arrays = dict(found)
    files = [f"{name}/{i}.png" for name in CLASSES for i in range(6)]
    assert arrays["files"].tolist() == files
    assert arrays["y"].tolist() == [file.partition("/")[0] for file in files]
    assert arrays["class_names"].tolist() == list(CLASSES)
    assert arrays["index"].tolist() == list(range(12))
    twin = TimmFeatures("test_resnet", pretrained=False, image_size=32, device="cpu")
    np.testing.assert_array_equal(arrays["X"], twin.transform([f"private/{file}" for file in files]))
    report = json.loads(str(arrays["report"]))
    assert report["model"] == "test_resnet" and report["weights"] == twin.fit().report_["weights"]
    assert not [path for path in images.iterdir() if path.name.startswith(".")]


def test_from_images_to_a_head_in_the_commands_of_the_readme(images, capsys):
    extract_both(*MODEL)
    assert run(*FIT, "--epsilon", "1", "--seed", "0", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert joblib.load("head.joblib").classes_.tolist() == list(CLASSES)
    assert run("predict", "head.joblib", "private.npz", "--out", "predictions.csv") == 0
    labels = np.repeat(CLASSES, 6)
    assert (pd.read_csv("predictions.csv")["prediction"] == labels).mean() > 0.8
    assert run("report", "head.joblib") == 0
    assert "(1, 1e-05)-differential privacy" in capsys.readouterr().out


@pytest.fixture
def head(images, capsys):
    """A head trained on the rows of both folders, in head.joblib."""
    extract_both(*MODEL)
    assert run(*FIT, "--epsilon", "1", "--seed", "0", "--quiet") == 0
    capsys.readouterr()
    return images


class TestPredictionsOfImages:
    """The model knows its network."""

    def test_a_folder(self, head, capsys):
        assert run("predict", "head.joblib", "private", "--device", "cpu", "--proba") == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "file,prediction,proba_cat,proba_dog"
        assert [line.split(",")[0] for line in lines[1:]] == [
            f"{c}/{i}.png" for c in CLASSES for i in range(6)
        ]
        assert run("predict", "head.joblib", "private.npz", "--proba") == 0  # which names its files too
        assert capsys.readouterr().out.splitlines() == lines

    def test_an_array_has_no_names(self, head, capsys):
        pixels = np.stack([np.asarray(Image.open(f"private/cat/{i}.png")) for i in range(6)])
        for name in ("new.npy", "new.npz"):
            np.save(name, pixels) if name.endswith("y") else np.savez(name, X=pixels)
            assert run("predict", "head.joblib", name) == 0
            assert capsys.readouterr().out.split() == ["prediction", *["cat"] * 6]

    def test_skipped_images_have_no_line(self, head, capsys):
        Path("private/cat/2.png").write_bytes(b"damaged")
        error = refuse(capsys, head, "predict", "head.joblib", "private")
        assert error.endswith("; fix or remove it, or pass --on-error skip.")
        assert run("predict", "head.joblib", "private", "--on-error", "skip") == 0
        captured = capsys.readouterr()
        assert captured.err.startswith("skmixdp predict: skipped private/cat/2.png, which cannot be read")
        assert len(captured.out.splitlines()) == 12 and "cat/2.png" not in captured.out

    def test_rows_of_another_network_are_refused(self, head, capsys):
        options = json.dumps({"pretrained": False, "image_size": 16})
        run("extract", "public", *MODEL[:2], "--options", options, "--out", "other.npz", "--quiet")
        error = refuse(capsys, head, "predict", "head.joblib", "other.npz")
        assert "ROWS other.npz and the training rows of MODEL head.joblib were extracted with differ" in error

    def test_other_weights_are_refused_and_moved_ones_are_found(self, images, capsys):
        import torch
        from safetensors.torch import save_file

        from skmixdp.features.backends.timm_models import timm  # where torchvision is made to load

        for seed, name in ((0, "w.safetensors"), (1, "v.safetensors")):
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                save_file(timm.create_model("test_resnet").state_dict(), name)
        extract_both(*MODEL[:2], "--weights", "w.safetensors", "--options", '{"image_size": 32}')
        assert run(*FIT, "--seed", "0", "--quiet") == 0
        Path("w.safetensors").rename("moved.safetensors")
        capsys.readouterr()
        error = refuse(capsys, images, "predict", "head.joblib", "public")
        assert "w.safetensors' is not a file" in error
        error = refuse(capsys, images, "predict", "head.joblib", "public", "--weights", "v.safetensors")
        assert "were extracted with different settings (weights)" in error
        assert run("predict", "head.joblib", "public", "--weights", "moved.safetensors") == 0

    @pytest.mark.parametrize("extra", [["--id", "name"], ["--label-column", "y"]])
    def test_flags_of_tables(self, head, extra, capsys):
        error = refuse(capsys, head, "predict", "head.joblib", "public", *extra)
        assert f"{extra[0]} {extra[1]!r} is for tables and ROWS public holds images; drop it" in error

    def test_nothing_but_damaged_images(self, head, capsys):
        Path("new").mkdir()
        Path("new/a.png").write_bytes(b"damaged")
        error = refuse(capsys, head, "predict", "head.joblib", "new", "--on-error", "skip")
        assert "ROWS new: none of the 1 images could be read" in error


def test_a_private_folder_may_lack_a_class_of_the_public_one(images):
    for i in range(6):
        (images / "private" / "cat" / f"{i}.png").unlink()
    (images / "private" / "cat").rmdir()
    extract_both(*MODEL)
    assert run(*FIT, "--quiet") == 0
    assert joblib.load("head.joblib").classes_.tolist() == list(CLASSES)


def test_rows_of_different_networks_are_refused_by_fit(images, no_noise, capsys):
    run("extract", "private", *MODEL, "--out", "private.npz", "--quiet")
    options = json.dumps({"pretrained": False, "image_size": 16})
    run("extract", "public", *MODEL[:2], "--options", options, "--out", "public.npz", "--quiet")
    error = refuse(capsys, images, *FIT)
    assert "public.npz and --private private.npz were extracted with different settings (preprocess" in error


def test_rounding_and_device_may_differ(images):
    run("extract", "private", *MODEL, "--out", "private.npz", "--quiet")
    run("extract", "public", *MODEL, "--out", "public.npz", "--quiet")
    assert run(*FIT, "--quiet") == 0


def test_a_folder_without_classes_with_and_without_a_table(images):
    assert run("extract", "private/cat", *MODEL, "--out", "plain.npz", "--quiet") == 0
    with np.load("plain.npz") as found:
        assert "y" not in found.files and found["files"].tolist() == [f"{i}.png" for i in range(6)]
    names = [f"{i}.png" for i in (3, 0, 5, 1, 2, 4)]
    pd.DataFrame({"file": names, "label": list("dafbce")}).to_csv("labels.csv", index=False)
    assert run("extract", "private/cat", "--labels", "labels.csv", *MODEL, "--out", "l.npz", "--quiet") == 0
    with np.load("l.npz") as found:
        assert found["y"].tolist() == list("abcdef") == found["class_names"].tolist()


@pytest.mark.parametrize("form", ["npz", "npy", "npy and labels"])
def test_images_in_numpy_files(form, folder):
    pixels, y = np.random.default_rng(0).integers(0, 256, (5, 8, 8), dtype=np.uint8), np.arange(5) % 2
    np.save("images.npy", pixels)
    np.save("labels.npy", y)
    np.savez("images.npz", X=pixels, y=y)
    source = ["images.npz"] if form == "npz" else ["images.npy"]
    source += ["--labels", "labels.npy"] if "labels" in form else []
    assert run("extract", *source, *MODEL, "--out", "feats.npz", "--quiet") == 0
    with np.load("feats.npz") as found:
        assert found["X"].shape == (5, 96) and "files" not in found.files
        assert (found["y"].tolist() == y.tolist()) if form != "npy" else "y" not in found.files


def test_skipped_images_are_named_and_leave_their_index(images, capsys):
    (images / "private" / "cat" / "2.png").write_bytes(b"damaged")
    command = ("extract", "private", *MODEL, "--out", "feats.npz")
    error = refuse(capsys, images, *command)
    assert "private/cat/2.png cannot be read (" in error
    assert error.endswith("; fix or remove it, or pass --on-error skip.")
    assert run(*command, "--on-error", "skip") == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("skmixdp extract: skipped private/cat/2.png, which cannot be read")
    assert "11 rows of 96 features, 11 computed, 1 images skipped" in captured.out
    with np.load("feats.npz") as found:
        assert found["index"].tolist() == [i for i in range(12) if i != 2]
        assert len(found["X"]) == len(found["y"]) == len(found["files"]) == 11
        assert found["files"][2] == "cat/3.png"


def test_nothing_but_damaged_images(images, capsys):
    for i in range(1, 6):
        (images / "private" / "cat" / f"{i}.png").unlink()
    (images / "private" / "cat" / "0.png").write_bytes(b"damaged")
    error = refuse(capsys, images, "extract", "private/cat", *MODEL, "--out", "f.npz", "--on-error", "skip")
    assert "IMAGES private/cat: none of the 1 images could be read" in error


def test_open_clip(images, tiny_clip):
    model = ("--model", f"open-clip:local-dir:{tiny_clip}", "--device", "cpu")
    assert run("extract", "private", *model, "--out", "feats.npz", "--quiet") == 0
    with np.load("feats.npz") as found:
        assert found["X"].shape == (12, 8)
        assert_close(np.linalg.norm(found["X"], axis=1), 1, 1e-5)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--out", "feats.npy"], "--out feats.npy must end in .npz"),
        (["--out", "no/feats.npz"], "the folder no does not exist"),
        (
            ["--model", "resnet50"],
            "--model resnet50 starts with none of the known families; use one like timm",
        ),
        (["--model", "timm:"], "--model timm: is written like timm:resnet50; fix the name"),
        (["--options", "{"], "--options '{' is not JSON"),
        (["--options", "[1]"], "--options '[1]' must be a JSON object"),
        (
            ["--options", '{"wings": 1}'],
            "--options names 'wings', which is not among the other parameters of",
        ),
        (["--options", '{"device": "cpu"}'], "--options names 'device', which is not among"),
        (["--weights", "none.safetensors", "--options", "{}"], "pretrained='none.safetensors' is not a file"),
        (["--batch-size", "0"], "argument --batch-size: '0' must be 'auto' or a whole number of at least 1"),
        (["--workers", "-1"], "argument --workers: '-1' must be a whole number of at least 0"),
        (["--device", "nowhere"], "--device nowhere cannot be used"),
        (["--cache", "labels.csv"], "--cache labels.csv cannot be used"),
        (
            ["--labels", "labels.csv"],
            "--labels labels.csv has no rows for 11 files, such as 'cat/1.png'; add",
        ),
        (["--labels", "more.csv"], "--labels more.csv names 1 files that are not there, such as 'cat/9.png'"),
        (["--labels", "twice.csv"], "--labels twice.csv names a file more than once"),
        (
            ["--labels", "nameless.csv"],
            "--labels nameless.csv has the columns ['a']; name them file and label",
        ),
        (["--labels", "labels.npy"], "--labels labels.npy must be a table with the columns file and label"),
    ],
)
def test_extract_refuses(extra, message, images, capsys):
    files = [f"{name}/{i}.png" for name in CLASSES for i in range(6)]
    for name, column in {"labels": files[:1], "more": [*files, "cat/9.png"], "twice": files * 2}.items():
        pd.DataFrame({"file": column, "label": "x"}).to_csv(f"{name}.csv", index=False)
    pd.DataFrame({"a": files}).to_csv("nameless.csv", index=False)
    np.save("labels.npy", np.arange(12))
    assert message in refuse(capsys, images, "extract", "private", *MODEL, "--out", "feats.npz", *extra)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["none"], "IMAGES none does not exist; give a folder of images"),
        (["text.txt"], "IMAGES text.txt is a file and not a folder"),
        (["empty"], "path='empty' holds no images"),
        (["floats.npy"], "X holds numbers of shape (2, 4, 4); pass images as uint8"),
        (
            ["labelled.npz", "--labels", "y.npy"],
            "IMAGES labelled.npz holds its labels in array y and --labels",
        ),
        (["pixels.npy", "--labels", "y.npy"], "IMAGES pixels.npy has images of shape (2, 4, 4) and 3 labels"),
    ],
)
def test_extract_refuses_what_holds_no_images(source, message, folder, capsys):
    Path("text.txt").write_text("")
    Path("empty").mkdir()
    pixels = np.zeros((2, 4, 4), np.uint8)
    np.save("floats.npy", pixels.astype(float))
    np.save("pixels.npy", pixels)
    np.savez("labelled.npz", X=pixels, y=np.arange(2))
    np.save("y.npy", np.arange(3))
    before = sorted(folder.rglob("*"))
    assert run("extract", *source, *MODEL, "--out", "feats.npz") == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and message in captured.err
    assert sorted(folder.rglob("*")) == before


def test_existing_output_is_refused_and_kept(images, capsys):
    Path("feats.npz").write_text("old")
    assert run("extract", "private", *MODEL, "--out", "feats.npz") == 2
    assert "feats.npz exists; choose another name, or pass --force" in capsys.readouterr().err
    assert Path("feats.npz").read_text() == "old"
    assert run("extract", "private", *MODEL, "--out", "feats.npz", "--force", "--quiet") == 0
    assert np.load("feats.npz")["X"].shape == (12, 96)


@pytest.mark.slow
def test_a_killed_command_leaves_no_output_and_goes_on_from_its_cache(images, capsys):
    save_classes(images / "many", n=60)
    command = ["extract", "many", *MODEL, "--batch-size", "4", "--cache", "cache", "--out", "feats.npz"]
    code = (
        "import sys, time\n"
        "from skmixdp.features import _extraction\n"
        "_extraction._SHARD_ROWS = 8\n"
        "from skmixdp.features.backends.timm_models import TimmEncoder\n"
        "forward = TimmEncoder.forward\n"
        "TimmEncoder.forward = lambda self, batch: (time.sleep(0.1), forward(self, batch))[1]\n"
        "from skmixdp._cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code, *command], env=environment)
    while len(list((images / "cache").rglob("*.npz"))) < 2 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = sum(len(np.load(path)["keys"]) for path in (images / "cache").rglob("*.npz"))
    assert 16 <= kept < 120
    assert not Path("feats.npz").exists()
    assert run(*command) == 0
    assert f"120 rows of 96 features, {120 - kept} computed" in capsys.readouterr().out
