"""The quick path of AdaMix's Theorem 4, and its two problems."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import adamix_theorem4


def test_the_quick_path_keeps_the_bound_in_every_setting(tmp_path, capsys):
    adamix_theorem4.main(["--quick", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "adamix_theorem4.csv")
    assert set(found["changed"]) == {"d", "n", "n_pub", "rho", "path"}
    assert (found["private"] < found["bound"] + found["gap"]).all()
    assert "| exponent: bound |" in capsys.readouterr().out


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
