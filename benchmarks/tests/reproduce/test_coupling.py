"""Quick paths of Coupling's scripts: tables, heads from zero, and weights."""

import pandas as pd
import pytest

from benchmarks.reproduce import coupling_heads, coupling_tables, coupling_weights
from tests.conftest import make_problem


def test_every_part_of_heads_from_zero_runs_on_the_digits(quick, tmp_path):
    parts = set(coupling_heads.PARTS) - {"dimension"}
    _, printed = quick(coupling_heads, table=f"coupling_heads_{min(parts)}")
    for part in parts:
        found = pd.read_csv(tmp_path / f"coupling_heads_{part}.csv")
        assert found["accuracy"].between(0.5, 1).all()
        assert f"{part}\n\n|  | {found['method'].iloc[0]} |" in printed


def test_a_split_gives_private_and_public_rows_that_share_none():
    X, y, X_pub, y_pub, X_test, _ = coupling_heads.split("digits", 0.2, None, "split", 0)
    assert len(X) + len(X_pub) + len(X_test) == 1797 and len(y) == len(X) and len(y_pub) == len(X_pub)
    rows = {row.tobytes() for row in X} & {row.tobytes() for row in X_pub}
    assert not rows


def test_the_tables_are_written_and_printed(quick):
    table, printed = quick(coupling_tables)
    assert len(table) == 5
    assert "`Coupling()`" in printed


def test_deltas_are_the_printed_ones_and_a_smaller_delta_costs_epsilon():
    table = coupling_tables.conversions(quick=True)
    for _, row in table.iterrows():
        assert row["delta"] == pytest.approx(row["printed delta"], rel=1e-3)
        assert row["full batch"] > row["epsilon at 1e-5"] + 0.01
    assert table["full batch"].round(4).tolist() == [2.0396, 2.0172, 5.0373, 2.0559, 2.1123]


def test_every_row_of_table_2_is_a_recipe():
    problem = make_problem()
    for row in coupling_tables.TABLE_2:
        assert problem.plan(problem.recipe(row.algorithm)).n_steps == 4


def test_every_weight_is_tried(quick):
    found, printed = quick(coupling_weights)
    assert set(found["weight"]) == {str(weight) for weight in coupling_weights.WEIGHTS}
    assert found["accuracy"].between(0.2, 1).all()
    assert "| public share |" in printed
