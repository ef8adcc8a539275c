"""Quick paths of AdaMix's scripts, and the parts that they are made of."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import (
    adamix_ablation,
    adamix_few_rows,
    adamix_privacy,
    adamix_settings,
    adamix_shift,
    adamix_theorem4,
)
from benchmarks.reproduce.adamix_ablation import data_folder


def test_the_ablation_writes_both_tables_and_the_figure(quick, picture, tmp_path):
    accuracies, printed = quick(adamix_ablation, data="banking77")
    assert set(accuracies["method"]) == {*adamix_ablation.METHODS, "Only-Public"}
    assert accuracies["accuracy"].between(0.5, 1).all()
    errors = pd.read_csv(tmp_path / "adamix_ablation_reconstruction.csv")
    means = errors.groupby(["P", "gradient", "subspace"])["error"].mean().unstack()
    # The larger the subspace the better, and the public one better than a random one.
    assert (means["public"] < means["random"]).all()
    assert means.groupby("gradient")["public"].is_monotonic_decreasing.all()
    assert picture("adamix_ablation") and "| both (AdaMix) |" in printed


@pytest.mark.skipif(not (data_folder() / "banking77").is_dir(), reason="needs banking77; set SKMIXDP_DATA")
def test_public_rows_are_the_first_of_each_class_and_the_rest_is_private():
    split = adamix_ablation.make_split(0, 2, None)
    assert len(split.y_pub) == 154
    assert len(split.y_pub) + len(split.y_priv) == 10003
    assert (pd.Series(split.y_pub).value_counts() == 2).all()


def test_adamix_and_the_default_stay_near_the_public_rows_where_private_ones_are_few(quick):
    found, printed = quick(adamix_few_rows, data="banking77")
    errors = found.set_index("method")["error"]
    assert set(errors.index) == {*adamix_few_rows.METHODS, "only public"}
    assert errors["only public"] == pytest.approx(0.34, abs=0.02)
    assert errors["fully private"] > 0.85
    # With the noise of many rows, AdaMix had an error of 0.62.
    np.testing.assert_allclose(errors[["AdaMix", "default"]], errors["only public"], atol=0.02)
    assert "| default gains |" in printed


@pytest.mark.filterwarnings("ignore")
def test_attacks_and_curves_per_instance_write_both_tables_and_the_figure(quick, picture, tmp_path):
    found, printed = quick(adamix_privacy, data="banking77")
    table = found.set_index("method")
    with_and_without = adamix_privacy.ONLY_PUBLIC, adamix_privacy.NON_PRIVATE
    assert set(table.index) == {*adamix_privacy.METHODS, *with_and_without}
    # Who trains without privacy is attacked best; who looks at public rows alone, not at all.
    assert table["auc"].idxmax() == adamix_privacy.NON_PRIVATE
    assert abs(table.loc[adamix_privacy.ONLY_PUBLIC, "auc"] - 0.5) < 0.03
    rows = pd.read_csv(tmp_path / "adamix_privacy_rows.csv").set_index("method")
    assert set(rows.index) == set(adamix_privacy.METHODS)
    assert (rows[["10%", "50%", "90%"]].to_numpy() <= adamix_privacy.RECORDED).all()
    assert picture("adamix_privacy") and "| AdaMix | 3 |" in printed


def test_rows_near_the_guarantee_are_counted():
    found = adamix_privacy.summary(np.array([1.0, 2.0, 2.8, 2.9, 3.0]))
    assert found["near"] == 0.6 and found["50%"] == 2.8


def test_each_setting_of_figures_7_and_8_is_fitted_and_keeps_its_start(quick):
    found, printed = quick(adamix_settings, data="banking77")
    assert list(found["figure"]) == ["quantile", "quantile", "noise, AdaMix", "noise, NGD"]
    assert found["error"].max() < 0.4  # public rows alone have 0.34
    assert "| best total rate |" in printed


# -- public rows of another domain ---------------------------------------------------------------


def test_outlines_are_bright_where_images_change():
    image = np.zeros((1, 28, 28), np.uint8)
    image[0, 8:20, 8:20] = 100
    (found,) = adamix_shift.outlines(image)
    assert found.dtype == np.uint8 and found.max() == 255
    assert found[14, 14] == found[2, 2] == 0 and found[14, 8] > 100
    assert not adamix_shift.outlines(np.zeros((1, 28, 28), np.uint8)).any()


def test_the_boost_is_the_papers():
    table = pd.DataFrame(
        [
            {"part": "shift", "seed": 0, "method": "non-private", "accuracy": 0.9},
            {"part": "boost", "seed": 0, "method": "only public", "shots": 5, "accuracy": 0.6},
            {"part": "boost", "seed": 0, "method": "AdaMix", "shots": 5, "accuracy": 0.8},
        ]
    )
    (boost,) = adamix_shift.with_boosts(table)["boost"]
    assert boost == pytest.approx((0.4 - 0.1) / (0.2 - 0.1))


@pytest.mark.filterwarnings("ignore")
def test_public_rows_of_another_domain_are_worse(quick, picture, tmp_path):
    cache = str(tmp_path / "rows")
    table, printed = quick(adamix_shift, "--cache", cache, data="fashion_mnist", needs="kymatio")
    shift = table[table["part"] == "shift"].set_index(["method", "domain"])["accuracy"]
    assert shift["only public", adamix_shift.SAME] > shift["only public", adamix_shift.OTHER] + 0.05
    assert shift["AdaMix", adamix_shift.OTHER] > shift["only public", adamix_shift.OTHER]
    assert picture("adamix_shift") and "| public rows per class |" in printed


# -- Theorem 4 -------------------------------------------------------------------------------------


def test_the_bound_of_theorem_4_holds_in_every_setting(quick):
    found, printed = quick(adamix_theorem4)
    assert set(found["changed"]) == {"d", "n", "n_pub", "rho", "path"}
    assert (found["private"] < found["bound"] + found["gap"]).all()
    assert "| exponent: bound |" in printed


@pytest.mark.parametrize("name", adamix_theorem4.PROBLEMS)
def test_gradients_are_those_of_the_losses_and_vanish_at_the_optimum(name):
    problem = adamix_theorem4.PROBLEMS[name](5)
    rows = problem.draw(np.random.default_rng(0), 40_000)
    w, step = np.full(5, 0.2), 1e-5
    sides = [[problem.losses(w + sign * step * e, rows).sum() for e in np.eye(5)] for sign in (1, -1)]
    expected = (np.array(sides[0]) - sides[1]) / (2 * step)
    np.testing.assert_allclose(problem.gradient(rows)(w), expected, atol=1e-2)
    assert np.abs(problem.gradient(rows)(problem.optimum)).max() / len(rows) < 0.01
    assert problem.excess(problem.optimum) == pytest.approx(0, abs=1e-12)
    assert problem.excess(w) > 0
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
