"""The quick path of PAZO's settings."""

import pandas as pd
import pytest

from benchmarks.reproduce import pazo_settings


@pytest.mark.parametrize("part", pazo_settings.PARTS)
def test_the_quick_path_fits_two_cells_with_true_and_permuted_labels(part, tmp_path, capsys):
    pazo_settings.main(["--quick", "--part", part, "--out", str(tmp_path)])
    path = tmp_path / f"pazo_settings_{part}.csv"
    found = pd.read_csv(path)
    assert len(found) == 2
    assert found[["true", "permuted", "public"]].stack().between(50, 100).all()
    pazo_settings.main(["--quick", "--part", part, "--out", str(tmp_path)])  # nothing is left to do
    pd.testing.assert_frame_equal(pd.read_csv(path), found)
    assert f"| {found['line'][0]} |" in capsys.readouterr().out


def test_public_rows_have_the_counts_of_their_classes():
    split = pazo_settings.make_split(pazo_settings.COUNTS["9 and 1"], 0)
    assert [int((split.y_pub == label).sum()) for label in range(10)] == [9] * 5 + [1] * 5
    assert len(split.y) + len(split.y_pub) + len(split.y_test) == 1797
