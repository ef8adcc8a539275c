"""Quick paths of the scripts, where their data are at hand."""

import pandas as pd
import pytest


@pytest.fixture
def quick(tmp_path, capsys):
    """Runs a script's quick path, and returns its table and what it printed; pictures are in ``tmp_path``."""

    def run(script, *arguments, data=None, needs=None, table=None):
        from benchmarks.reproduce.adamix_ablation import data_folder

        if needs:
            pytest.importorskip(needs, reason=f"needs {needs}; install skmixdp[features]")
        if data and not (data_folder() / data).is_dir():
            pytest.skip(f"needs {data}; set SKMIXDP_DATA to the folder that holds it.")
        script.main(["--quick", *arguments, "--out", str(tmp_path)])
        name = table or script.__name__.rpartition(".")[2]
        return pd.read_csv(tmp_path / f"{name}.csv"), capsys.readouterr().out

    return run


@pytest.fixture
def picture(tmp_path):
    """Whether a script has drawn its picture."""
    return lambda name, least=1000: (tmp_path / f"{name}.png").stat().st_size > least
