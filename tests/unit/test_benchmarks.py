import numpy as np
import pandas as pd
import pytest

from benchmarks.measure import Case, measure
from benchmarks.run import main


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    main(["--profile", "quick", "--out", str(folder)])
    return folder


def test_every_method_of_the_quick_profile_has_finite_results(out):
    results = pd.read_csv(out / "results.csv")
    assert set(results["method"]) == {
        "plain_products",
        "skmixdp_step",
        "skmixdp_fit",
        "sklearn_fit",
        "accounting",
    }
    numbers = results[["seconds", "ratio", "repetitions"]].to_numpy()
    assert np.all(np.isfinite(numbers)) and np.all(numbers > 0)
    assert np.all(results["peak_bytes"] >= 0)


def test_the_fastest_way_to_compute_the_products_is_the_limit(out):
    results = pd.read_csv(out / "results.csv")
    limits = results[results["role"] == "limit"]
    assert np.allclose(limits.groupby(["d_in", "k"])["ratio"].min(), 1.0)


def test_the_table_has_a_line_for_each_result(out):
    lines = (out / "table.md").read_text().splitlines()
    assert len(lines) == 2 + len(pd.read_csv(out / "results.csv"))
    assert len({line.count("|") for line in lines}) == 1


def test_the_picture_is_a_png(out):
    assert (out / "ratios.png").read_bytes().startswith(b"\x89PNG")


def test_table_and_picture_are_made_again_without_measuring(out, tmp_path):
    (tmp_path / "results.csv").write_bytes((out / "results.csv").read_bytes())
    main(["--out", str(tmp_path), "--stages", "table", "plot"])
    assert (tmp_path / "table.md").read_text() == (out / "table.md").read_text()
    assert (tmp_path / "ratios.png").exists()


def test_peak_memory_counts_what_one_call_allocates():
    def allocate():
        np.ones(2**20)
        return "done"

    (found,) = measure([Case("numpy", "ones", "limit", allocate)], seconds=1e-3)
    assert found.note == "done"
    assert 2**23 <= found.peak_bytes < 1.1 * 2**23
