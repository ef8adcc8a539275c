"""``make demo`` begins with what the README shows."""

from pathlib import Path

from examples import readme

ROOT = Path(__file__).parents[2]


def test_the_examples_are_those_of_the_readme():
    assert list(readme.examples()) == ["A table", "Features, with public rows"]


def test_they_run_and_leave_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    readme.main()
    printed = capsys.readouterr().out
    for shown in ("ROC AUC", "(1, 0.0001)-differential privacy", "test accuracy 0."):
        assert shown in printed
    assert list(tmp_path.iterdir()) == [] and Path.cwd() == tmp_path


def test_the_demo_runs_them_first():
    demo = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2].split("\n\n")[0]
    assert demo.index("examples/readme.py") < demo.index("examples/quickstart.py")
