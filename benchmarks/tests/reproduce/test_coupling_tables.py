"""The quick path of the reproduction, and what its tables say."""

import pandas as pd
import pytest

from benchmarks.reproduce.coupling_tables import TABLE_2, conversions, main
from tests.conftest import make_problem


def test_the_quick_path_writes_and_prints(tmp_path, capsys):
    main(["--quick", "--out", str(tmp_path)])
    table = pd.read_csv(tmp_path / "coupling_tables.csv")
    printed = capsys.readouterr().out
    assert len(table) == 5
    assert "`Coupling()`" in printed


def test_deltas_are_the_printed_ones_and_a_smaller_delta_costs_epsilon():
    table = conversions(quick=True)
    for _, row in table.iterrows():
        assert row["delta"] == pytest.approx(row["printed delta"], rel=1e-3)
        assert row["full batch"] > row["epsilon at 1e-5"] + 0.01
    assert table["full batch"].round(4).tolist() == [2.0396, 2.0172, 5.0373, 2.0559, 2.1123]


def test_every_row_of_table_2_is_a_recipe():
    problem = make_problem()
    for row in TABLE_2:
        assert problem.plan(problem.recipe(row.algorithm)).n_steps == 4
