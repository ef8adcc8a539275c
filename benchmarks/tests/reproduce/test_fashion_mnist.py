"""The quick path from images to private heads, where its data are at hand."""

import pandas as pd
import pytest

from benchmarks.reproduce import fashion_mnist

pytest.importorskip("kymatio", reason="needs kymatio; install skmixdp[features]")


def test_the_quick_path_compares_all_methods_and_goes_on_where_it_stopped(tmp_path, capsys, monkeypatch):
    if not (fashion_mnist.data_folder() / "fashion_mnist").is_dir():
        pytest.skip("needs fashion_mnist; set SKMIXDP_DATA to the folder that holds it.")
    arguments = ["--quick", "--out", str(tmp_path), "--cache", str(tmp_path / "rows")]
    fashion_mnist.main(arguments)
    table = pd.read_csv(tmp_path / "fashion_mnist.csv")
    found = table.set_index("method")["accuracy"]
    assert found[fashion_mnist.NON_PRIVATE] > 0.7
    assert found[fashion_mnist.NON_PRIVATE] > found[fashion_mnist.ONLY_PUBLIC] > 0.5
    # With 600 images, five steps and no public rows nothing much is learnt.
    assert found[fashion_mnist.ADAMIX] > found[fashion_mnist.FULLY_PRIVATE]
    assert "| AdaMix | 3 |" in capsys.readouterr().out
    monkeypatch.setattr(fashion_mnist, "load", None)  # nothing is computed again
    fashion_mnist.main(arguments)


def test_missing_data_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SKMIXDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit):
        fashion_mnist.main(["--quick"])
    assert "SKMIXDP_DATA" in capsys.readouterr().err
