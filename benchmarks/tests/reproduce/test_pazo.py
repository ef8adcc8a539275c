"""Quick paths of PAZO's scripts: the comparison on texts, the control, settings, and time."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import pazo_banking77, pazo_control, pazo_settings, pazo_speed
from benchmarks.reproduce.adamix_ablation import data_folder, make_split


def test_every_method_is_compared_and_the_claims_are_checked(quick, picture):
    found, printed = quick(pazo_banking77, data="banking77")
    assert set(found["method"]) == {*pazo_banking77.GRIDS, "only public"}
    assert found["accuracy"].between(0.6, 1).all()
    assert found.loc[found["method"] != "only public", "control"].between(0, 0.85).all()
    assert picture("pazo_banking77")
    assert "| PAZO-S |" in printed and "all PAZO variants above DPZero" in printed
    assert "Private labels permuted:" in printed and "(control)" in printed


@pytest.mark.skipif(not (data_folder() / "banking77").is_dir(), reason="needs banking77; set SKMIXDP_DATA")
def test_rehearsals_use_each_public_row_once_and_every_class_alike():
    split = make_split(0, pazo_banking77.SHOTS, None)
    for parts in pazo_banking77.rehearsals(split, 2):
        assert len(np.unique(np.concatenate(parts))) == len(split.y_pub)
        for rows, count in zip(parts, (2, 2, 1), strict=True):
            assert (np.bincount(split.y_pub[rows]) == count).all()


def test_true_and_permuted_labels_are_compared(quick, picture):
    found, printed = quick(pazo_control)
    found = found.set_index("method")
    assert list(found.index) == ["pazo-m", "pazo-s"]
    assert found[["true", "permuted", "public"]].stack().between(0.7, 1).all()
    assert found.loc["pazo-s", "true"] == pytest.approx(found.loc["pazo-s", "permuted"], abs=0.03)
    assert picture("pazo_control") and "| public rows alone |" in printed


@pytest.mark.parametrize("part", pazo_settings.PARTS)
def test_two_cells_are_fitted_with_true_and_permuted_labels(part, quick):
    options = {"table": f"pazo_settings_{part}"}
    found, _ = quick(pazo_settings, "--part", part, **options)
    assert len(found) == 2
    assert found[["true", "permuted", "public"]].stack().between(50, 100).all()
    again, printed = quick(pazo_settings, "--part", part, **options)  # nothing is left to do
    pd.testing.assert_frame_equal(again, found)
    assert f"| {found['line'][0]} |" in printed


def test_public_rows_have_the_counts_of_their_classes():
    split = pazo_settings.make_split(pazo_settings.COUNTS["9 and 1"], 0)
    assert [int((split.y_pub == label).sum()) for label in range(10)] == [9] * 5 + [1] * 5
    assert len(split.y) + len(split.y_pub) + len(split.y_test) == 1797


# Said of Opacus's hooks, where that is installed.
@pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning")
def test_what_every_method_computes_is_counted(quick):
    found, printed = quick(pazo_speed)
    found = found.set_index("method")
    assert set(pazo_speed.METHODS) <= set(found.index)
    assert (found["seconds"] > 0).all()
    # Zeroth order sums no gradients.
    for name in found.index:
        assert found["sums"][name] == (0 if name.startswith(("DPZero", "PAZO")) else 1)
    counted = {
        "DP-SGD, closed form": 1,
        "DPZero, q = 1": 2,
        "DPZero, q = 5": 6,
        "PAZO-M, q = 1": 2,
        "PAZO-P, k = 3, q = 1": 2,
        "PAZO-S, k = 3": 6,
    }
    assert {name: found["forward"][name] for name in counted} == counted
    public = {"PAZO-M, q = 1": 1, "PAZO-P, k = 3, q = 1": 3, "PAZO-S, k = 3": 3, "DPZero, q = 1": 0}
    assert {name: found["public"][name] for name in public} == public
    assert "| PAZO-S, k = 3 |" in printed
