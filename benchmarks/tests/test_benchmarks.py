import re
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import audit, device, elsewhere, growth, persons, scale, serving, shapes, structure
from benchmarks.measure import Case, measure
from benchmarks.methods import diffprivlib_fit, per_sample, plain_products, skmixdp_heads, skmixdp_step
from benchmarks.problems import Size, make_problem
from benchmarks.run import main
from tests.stand_ins import interpreter


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    main(["--profile", "quick", "--out", str(folder)])
    return folder


def test_every_method_of_the_quick_profile_has_finite_results(out):
    results = pd.read_csv(out / "results.csv")
    assert set(results["method"]) == {
        *("plain_products", "roofline", "skmixdp_step", "skmixdp_heads", "skmixdp_fit", "sklearn_fit"),
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


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_passes_and_fits_of_all_shapes_are_measured(tmp_path, capsys):
    shapes.main(["--shrink", "500", "--turns", "1", "--out", str(tmp_path)])
    tables = (("passes", shapes.PASSES), ("fits", shapes.FITS), ("additive", shapes.ADDITIVE))
    for part, sizes in tables:
        lines = (tmp_path / f"shapes_{part}.md").read_text().splitlines()
        assert len(lines) == 2 + len(sizes) and len({line.count("|") for line in lines}) == 1
        assert not any("nan" in line for line in lines)
    assert capsys.readouterr().out.count("load") == 3


#: Fits that take twice the time for twice the rows, and as much memory.
FITS = {"container": "array", "size": "n", "value": [1, 2, 4], "seconds": [1.0, 2.0, 4.0], "MiB": 3.0}


def test_growth_is_measured_over_two_decades_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(growth, "measure_containers", lambda *given: pd.DataFrame(FITS))
    growth.main(["--shrink", "100", "--repetitions", "1", "--out", str(tmp_path)])
    found = pd.read_csv(tmp_path / "growth.csv")
    on_workers = {"workers"} if find_spec("distributed") else set()
    assert set(found["size"]) == {"n", "d_in", "k", "steps"} | on_workers and np.all(found["seconds"] > 0)
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert printed.count("time grows with power") == 4 + 2 * len(on_workers)
    assert f"{growth.n_cores()} cores" in printed
    for values in growth.GRIDS.values():
        assert values[-1] == 100 * values[0]
    assert (tmp_path / "containers.md").read_text().splitlines()[2] == "| array | 2.00 | 3 | 1.00 | 0.00 |"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")
def test_fits_to_each_container_are_measured(monkeypatch, capsys):
    monkeypatch.setattr(growth, "FIT_GRIDS", {"n": [16_000]})
    found = growth.measure_containers(shrink=20, repetitions=1)
    there = [name for name, library in growth.CONTAINERS.items() if not library or find_spec(library)]
    assert list(found["container"]) == there and set(found["value"]) == {800}
    assert np.all(found[["seconds", "MiB"]] > 0)
    assert capsys.readouterr().out.count("n 800: ") == len(there)


def test_workers_share_a_pass(monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra `dask`")
    monkeypatch.setattr(growth, "WORKERS", (1, 2))
    found = growth.measure_workers(shrink=4, repetitions=3)
    assert list(found["value"]) == [1, 1, 2, 2] and list(found["clock"]) == ["wall", "CPU"] * 2
    assert np.all(found["seconds"] > 0)


def test_time_of_all_workers_is_added_up():
    class Workers:
        clocks = iter([{"one": 1.0, "other": 2.0}, {"one": 1.5, "other": 3.0}])

        def as_current(self):
            return nullcontext()

        def run(self, clock):
            return next(self.clocks)

    assert scale._spent_on(Workers(), lambda: None).cpu == 1.5


def test_without_dask_passes_on_workers_are_left_out(tmp_path, monkeypatch, capsys):
    line = {"size": "n", "value": [10, 1000], "clock": "CPU", "seconds": [1e-3, 1e-1]}
    monkeypatch.setattr(growth, "measure_growth", lambda *given: pd.DataFrame(line))
    monkeypatch.setattr(growth.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(growth, "CONTAINERS", {"Dask": "dask"})
    monkeypatch.setattr(growth, "containers_table", lambda fits: "")
    growth.main(["--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "distributed is not installed" in printed and "dask is not installed" in printed
    assert "n: CPU time grows with power 1.00" in printed
    assert set(pd.read_csv(tmp_path / "growth.csv")["size"]) == {"n"}


def test_powers_are_fitted_to_all_values():
    values = np.array([1, 2, 4])
    found = pd.DataFrame({"size": "workers", "value": values, "clock": "wall", "seconds": 8 / values})
    assert growth.slopes(found) == {("workers", "wall"): pytest.approx(-1)}
    found.loc[1, "seconds"] = 8.0  # the middle one counts in the level, not in the power
    assert growth.slopes(found) == {("workers", "wall"): pytest.approx(-1)}
    found.loc[2, "seconds"] = 8.0
    assert growth.slopes(found) == {("workers", "wall"): pytest.approx(0)}


def test_what_is_not_installed_is_said_and_left_out(monkeypatch, capsys):
    monkeypatch.setattr(per_sample.importlib.util, "find_spec", lambda name: None)
    assert per_sample.cases(make_problem(Size(50, 4, 3, 6))) == []
    assert capsys.readouterr().out.count("is not installed") == 2


def test_peers_take_a_step():
    pytest.importorskip("torch", reason="needs the extra `bench`")
    found = per_sample.cases(make_problem(Size(2500, 4, 3, 6)))
    assert {case.method for case in found} == {"per_sample"}
    assert "torch.func" in {case.variant for case in found}
    for case in found:
        assert "1000" in case.run()


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An interpreter in which a package of this name is diffprivlib: scikit-learn without noise.

    Its clock goes on by a second whenever someone looks at it.
    """
    models = (
        "import itertools\nimport time\nimport sklearn.linear_model\n\n\n"
        "time.process_time = itertools.count().__next__\n\n\n"
        "def LogisticRegression(epsilon, data_norm, random_state):\n"
        "    assert (epsilon, data_norm) == (1.0, 1.0)\n"
        "    return sklearn.linear_model.LogisticRegression()\n"
    )
    monkeypatch.setattr(elsewhere, "PYTHON", interpreter(tmp_path, "diffprivlib.models", models))


def test_diffprivlib_is_fitted_elsewhere_and_its_own_seconds_count(environment):
    problem = make_problem(Size(20_000, 64, 5, 60))
    (case,) = diffprivlib_fit.cases(problem)
    (found,) = measure([case], seconds=1e-6)
    assert found.seconds == 1
    assert found.note.startswith("accuracy ") and "on the 60 public rows" in found.note
    assert float(found.note.split()[1]) > 0.8


@pytest.mark.skipif(not elsewhere.is_there(), reason="needs `make diffprivlib`")
def test_the_real_one_is_fitted():
    (case,) = diffprivlib_fit.cases(make_problem(Size(500, 4, 3, 60)))
    assert case.run().startswith("accuracy ")


def test_without_its_environment_diffprivlib_is_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(elsewhere, "PYTHON", tmp_path / "python")
    assert diffprivlib_fit.cases(make_problem(Size(50, 4, 3, 6))) == []
    assert "see `make diffprivlib`" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc")
def test_passes_over_a_file_are_measured_by_one_command_which_leaves_no_file(tmp_path, monkeypatch, capsys):
    given = ["scale", "--out", str(tmp_path), "--rows", "3000", "--parts", "memory_map"]
    monkeypatch.setattr(sys, "argv", given)
    scale.main()
    written = (tmp_path / "memory_map.md").read_text()
    assert written in capsys.readouterr().out
    for figure in ("cold read of the file", "one pass, cold", "one pass, pages in memory", "peak RssAnon"):
        assert figure in written
    assert [path.name for path in tmp_path.iterdir()] == ["memory_map.md"]


def test_a_step_on_a_device_is_held_against_its_roofline(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason="tensors need skmixdp[features]")
    small = [
        *("--rows", "3000", "--features", "16", "--classes", "3", "5", "--square", "64", "--out"),
        str(tmp_path),
    ]
    device.main(["--device", "cpu", *small])
    found = pd.read_csv(tmp_path / "device.csv")
    assert list(found["k"]) == [3, 5] and np.all(found["step, ms"] > 0)
    assert np.all(found["roofline / step"] > 0)
    assert (tmp_path / "device.md").read_text() in capsys.readouterr().out
    if not torch.cuda.is_available():
        device.main(["--device", "cuda", *small])
        assert "nothing is measured" in capsys.readouterr().out


def ratios(found):
    limit = min(m.seconds for m in found if m.case.role == "limit")
    return {m.case.variant: m.seconds / limit for m in found}


def test_no_step_is_many_times_its_two_products():
    """What every run of the tests would see: bounds that a busy machine does not reach."""
    problem = make_problem(Size(10_000, 512, 10, 100))
    with threadpool_limits(1):
        found = measure(plain_products.cases(problem) + skmixdp_step.cases(problem)[:3], seconds=0.2)
    assert 0.3 < ratios(found)["private"] < 4
    assert max(m.peak_bytes for m in found if m.case.role == "step") < 150 * 2**20


@pytest.mark.parametrize(("d_in", "k"), [(512, 10), (512, 100), (2048, 10)])
def test_a_step_costs_little_more_than_its_two_products(d_in, k):
    """Regressions only: a busy machine moves ratios, the README has what an idle one shows."""
    problem = make_problem(Size(20_000, d_in, k, 200))
    with threadpool_limits(1):
        found = measure(plain_products.cases(problem) + skmixdp_step.cases(problem)[:3], seconds=1)
    assert ratios(found)["private"] < 2
    assert max(m.peak_bytes for m in found if m.case.role == "step") < 150 * 2**20


def test_several_heads_in_one_pass_are_cheaper_than_one_by_one():
    problem = make_problem(Size(20_000, 512, 10, 200))
    with threadpool_limits(1):
        found = ratios(measure(skmixdp_heads.cases(problem), seconds=1))
    assert found["16 heads in one pass"] < 2
    assert found["16 heads in one pass"] < 0.8 * found["16 heads one by one"]


def test_time_grows_linearly():
    with threadpool_limits(1):
        powers = growth.slopes(growth.measure_growth(shrink=4))
    assert all(0.5 < power < 1.2 for power in powers.values()), powers


def test_the_audit_resumes_and_states_what_it_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(audit, "ONE", (40, 8, 4, 24))
    arguments = ["--out", str(tmp_path), "--fits", "10", "--black-fits", "10", "--only"]
    audit.main([*arguments, "noisy-gd"])
    first = (tmp_path / "audit.csv").read_text()
    audit.main([*arguments, "noisy-gd", "ridge, adamix"])
    assert (tmp_path / "audit.csv").read_text().startswith(first)
    assert capsys.readouterr().out.count("noisy-gd: ") == 1
    page = (tmp_path / "audit_results.md").read_text()
    assert "of 6 audits refute a claim" in page
    for name in ("noisy-gd", "ridge, adamix"):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        assert row.count("|") == 12 and " | 4.00 | 0.925 | " in row


def test_serving_measures_every_way_to_predict_a_row():
    table = serving.measure([(8, 3)], repeats=1, number=1)
    assert {"scikit-learn", "skmixdp", "to_sklearn"} <= set(table["method"])
    assert (table["microseconds"] > 0).all()
    assert table.loc[table["method"] == "scikit-learn", "ratio"].tolist() == [1.0]


def test_lines_are_code_docstrings_comments_or_blank():
    head, function = '"""One.\n\nTwo."""\n\n# a comment\n', 'def f():\n    "It is."\n    return x\n'
    source = head + 'x = """a\n\nb"""  # another\n\n' + function
    assert structure.Lines.of(source) == structure.Lines(all=12, code=4, docstrings=4)


def test_frames_are_those_of_the_deepest_product_with_private_rows(monkeypatch, tmp_path):
    path = tmp_path / "products.py"
    path.write_text("def product(): pass\ndef deeper(): product()\ndef release(call): call()\n")
    code = {}
    exec(compile(path.read_text(), str(path), "exec"), code)
    monkeypatch.setattr(structure, "PACKAGE", tmp_path)
    monkeypatch.setattr(structure, "_PRODUCTS", path)
    product, deeper, release = code["product"], code["deeper"], code["release"]
    assert structure.deepest_product(lambda: (deeper(), release(product))) == 2
    assert structure.deepest_product(lambda: (release(product), release(deeper), release(product))) == 3
    assert structure.deepest_product(deeper) == 0


def test_the_structure_of_the_package_is_printed(capsys):
    structure.main()
    package, rooms, *middle, fit, alone, peer = capsys.readouterr().out.splitlines()
    of_all, of_code, of_docstrings = (int(word) for word in re.findall(r"\d+", package.replace(",", "")))
    assert of_all > of_code + of_docstrings > of_code > of_docstrings > 0
    assert re.fullmatch(r"rooms: \d+, floors: \d+, imports between them: \d+", rooms)
    shown = [line.split(" of ")[0].split() for line in middle if line.startswith("  ")]
    lines = [int(words[-1].replace(",", "")) for words in shown]
    assert len(lines) == len(structure.ROOMS) and min(lines) > 0 and sum(lines) == of_all
    for line in (fit, alone):
        assert int(re.search(r"(\d+) frames to a product", line)[1]) > 5
    assert "functions in" in peer and "frames" not in peer


def test_passes_over_persons_have_a_line_for_each_shape(monkeypatch, capsys):
    monkeypatch.setattr(persons, "SHAPES", ((200, 5, 3), (300, 4, 2)))
    persons.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(float(cell) > 0 for line in lines[2:] for cell in line.split("|")[2:4])
