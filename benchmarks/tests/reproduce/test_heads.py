"""Quick paths of heads on features of images and texts, and of searches."""

import importlib

import numpy as np
import pytest

from benchmarks.reproduce import fashion_mnist, private_search, scattering, zero_shot

#: Scripts that need data of a folder.
OF_FOLDERS = (
    *("adamix_ablation", "adamix_few_rows", "adamix_privacy", "adamix_settings", "adamix_shift"),
    *("fashion_mnist", "private_search", "scattering", "zero_shot"),
)
ON_IMAGES = {"data": "fashion_mnist", "needs": "kymatio"}


@pytest.mark.parametrize("script", OF_FOLDERS)
def test_missing_data_are_named(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        importlib.import_module(f"benchmarks.reproduce.{script}").main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err


def test_all_methods_on_images_are_compared_and_a_second_run_goes_on(quick, tmp_path, monkeypatch):
    arguments = [fashion_mnist, "--cache", str(tmp_path / "rows")]
    table, printed = quick(*arguments, **ON_IMAGES)
    found = table.set_index("method")["accuracy"]
    assert found[fashion_mnist.NON_PRIVATE] > 0.7
    assert found[fashion_mnist.NON_PRIVATE] > found[fashion_mnist.ONLY_PUBLIC] > 0.5
    # With 600 images, five steps and no public rows nothing much is learnt.
    assert found[fashion_mnist.ADAMIX] > found[fashion_mnist.FULLY_PRIVATE]
    assert "| AdaMix | 3 |" in printed
    monkeypatch.setattr(fashion_mnist, "load", None)  # nothing is computed again
    quick(*arguments, **ON_IMAGES)


def test_searches_state_naive_and_true_epsilons(quick):
    found, printed = quick(private_search, data="banking77")
    found = found.set_index("method")
    assert set(found.index) == set(private_search.METHODS)
    assert found["accuracy"].between(0.5, 1).all()
    ordinary = found.loc["GridSearchCV, 3 folds"]
    # Nine of the thirteen fits see a row: 3 * mu(3).
    assert ordinary["naive"] == pytest.approx(3.0) and ordinary["true"] == pytest.approx(10.98, abs=0.01)
    honest = found[found.index.str.startswith("PrivateSearchCV")]
    assert (honest["true"] <= 3.0).all() and (honest["true"] > 2.99).all()
    assert (honest["naive"] < 2.0).all()
    assert "| GridSearchCV, 3 folds |" in printed


@pytest.mark.parametrize("choose", [False, True], ids=["test images", "held-out training images"])
def test_a_head_on_scattering_features_spends_the_budget_and_no_more(quick, tmp_path, choose):
    arguments = ["--cache", str(tmp_path / "rows"), *(["--choose"] if choose else [])]
    name = "scattering_choice" if choose else "scattering"
    table, printed = quick(scattering, *arguments, **ON_IMAGES, table=name)
    settings = scattering.GRID if choose else (scattering.DEFAULT, scattering.CHOSEN)
    assert list(table["setting"]) == [setting.name for setting in settings]
    # The means and the head together, not one after the other.
    assert table["epsilon"].to_numpy() == pytest.approx(scattering.EPSILON, rel=1e-6)
    # Of 800 rows there is little to be learnt, and of their means nothing.
    assert table.set_index("setting")["accuracy"][scattering.DEFAULT.name] > 0.3
    assert f"| {scattering.CHOSEN.name} | 3.000 | 5 |" in printed


def test_damping_leaves_a_share_of_what_channels_have_in_common():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 81 * 4)).astype(np.float32)
    np.testing.assert_allclose(scattering.damped(X, 1.0), X, atol=1e-6)
    common = np.tile(np.r_[0, np.ones(80)][:, None], (1, 4)).astype(np.float32).reshape(1, -1)
    np.testing.assert_allclose(scattering.damped(common, 0.3), 0.3 * common, atol=1e-5)
    rest = scattering.damped(X, 0.0)
    np.testing.assert_allclose(rest.reshape(3, 81, 4)[:, 1:].mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(scattering.damped(rest, 0.3), rest, atol=1e-5)


def test_the_starts_are_ordered_as_in_the_paper(quick, picture):
    table, printed = quick(zero_shot, data="banking77")
    assert set(table["method"]) == {*zero_shot.STARTS, *map(zero_shot.TEXT_ALONE.format, zero_shot.BETAS)}
    found = table[table["shots"] == 2].set_index("method")["accuracy"]
    # After ten steps on few rows the start still shows.
    assert found[zero_shot.ZERO] < found[zero_shot.NAMES] < found[zero_shot.BOTH]
    assert found[zero_shot.FEW] < found[zero_shot.BOTH]
    assert picture("zero_shot") and f"| 2 | {zero_shot.BOTH} |" in printed
