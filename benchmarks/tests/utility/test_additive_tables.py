"""The tables that compare additive models with linear ones and with peers."""

import itertools

import pandas as pd
import pytest

from benchmarks.utility import additive
from benchmarks.utility.additive import Fits


def results_of(rows):
    """Results with measures that nothing of these rows has left out."""
    measures = dict.fromkeys((*additive.CLASSES, *additive.NUMBERS))
    base = {"setting": "", "shots": None, "epsilon": None, **measures}
    return pd.DataFrame([base | row for row in rows]).astype(dict.fromkeys(measures, float))


def own(method, seed, **measures):
    return {"data": "churn", "method": method, "shots": 0, "epsilon": 1.0, "seed": seed, **measures}


@pytest.fixture
def results():
    rows = [own("default", seed, auc=0.80 + seed / 100, log_loss=0.4) for seed in range(3)] + [
        own("additive", seed, auc=0.83 + seed / 100, log_loss=0.3) for seed in range(3)
    ]
    peer = {"defaults": (0.7, 0.72, 0.5), "good": (0.79, 0.81, 0.35)}
    for (setting, (first, second, loss)), seed in itertools.product(peer.items(), range(2)):
        auc = (first, second)[seed]
        rows.append(own("DP-EBM", seed, auc=auc, log_loss=loss) | {"setting": setting, "shots": None})
    rest = {"data": "churn", "seed": 0, "auc": 0.9, "log_loss": 0.2}
    rows += [{"method": name, **rest} for name in additive.NO_PRIVACY]
    return results_of(rows)


def test_the_peer_has_its_best_setting_and_differences_are_over_its_seeds(results):
    fits = Fits("auc", results)
    assert fits.peer().tolist() == [0.79, 0.81]
    assert fits.peer("defaults").tolist() == [0.7, 0.72]
    assert Fits("log_loss", results).peer().tolist() == [0.35, 0.35]
    ahead = additive.against_peer(fits.of(additive.CURVES), fits.peer())
    assert ahead.tolist() == pytest.approx([0.04, 0.03])


def test_a_line_of_the_means(results):
    line = additive.means(Fits("auc", results)).splitlines()[-1]
    assert line == ("| 0 | 1 | 1 | 0.810 | 0.840 | 0.710 | 0.800 | +0.030 | +0.035 | 0.900 | 0.900 | 0.900 |")


def test_cells_that_are_worse_beyond_an_error_are_listed(results):
    assert additive.worse(results) == ""
    results.loc[results["method"].eq("additive"), "auc"] -= 0.05
    assert additive.worse(results).splitlines()[-1] == "| churn | 0 | 1 | AUC | -0.020 ± 0.000 |"


def test_all_cells_and_references(results):
    line = additive.cells(results, ["auc", "log_loss"]).splitlines()[-1]
    assert line.startswith(
        "| churn | 0 | 1 | 0.810 / 0.840 / 0.800 | +0.030 ± 0.000 | 0.400 / 0.300 / 0.350 |"
    )
    assert additive.without_privacy(results, ["auc"]).splitlines()[-1] == "| churn | 0.900 / 0.900 / 0.900 |"
    text = additive.page(results, {"chosen": ["churn"]})
    assert "## Chosen tables: mean AUC" in text
    assert "R²" not in text


def test_a_fit_of_numbers_that_is_worse_than_a_constant_counts_as_one():
    results = results_of([own("additive", 0, r2=-3.0), own("default ridge", 0, r2=0.5)])
    assert Fits("r2", results).of(additive.CURVES).tolist() == [0.0]
