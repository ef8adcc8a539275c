"""Files of bytes that atheris changes by what code they reach.

``python -m tests.fuzz.test_bytes FORMAT CASES SEED`` runs in a process of its own, since libFuzzer ends its
process.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .limits import PATIENCE, attempt, cases, check_message, limits

#: What may be fuzzed.
FORMATS = ("npy", "npz", "parquet", "feather", "csv", "safetensors", "model", "event", "columns", "sqlite")

#: Longest file that is tried.
LARGEST = 8192


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_bytes(name):
    pytest.importorskip("atheris")
    command = ["tests.fuzz.test_bytes", name, str(cases(2)), str(random.randrange(10**6))]
    ended = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout[-8000:]}\n{ended.stderr[-3000:]}"


def main(name: str, n_cases: int, seed: int) -> None:
    """Fuzz a format; libFuzzer ends the process."""
    import atheris

    read = ("_files.formats", "_files.shards", "_cli", "estimators._saving", "privacy.ledger")
    with atheris.instrument_imports(include=[f"skmixdp.{room}" for room in read]):
        from . import test_files as files

    reader, contents = _format(files, name)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content)

    def one(data: bytes) -> None:
        with limits() as here:
            heard = attempt(lambda: reader(here, data), *files.BAD_FILE, KeyError, secret=True)
            if heard.error is not None:
                check_message(str(heard.error).replace("\n", " "))

    options = [f"-runs={n_cases}", f"-seed={seed}", f"-max_len={LARGEST}", "-timeout=120"]
    options += ["-print_final_stats=0", "-verbosity=0", f"-artifact_prefix={folder}/", str(folder)]
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


def _format(files: Any, name: str) -> tuple[Callable[[Path, bytes], Any], list[bytes]]:
    """What reads the bytes, and whole files to begin with."""
    import numpy as np

    import skmixdp
    from skmixdp.datasets import open_rows
    from skmixdp.privacy import PrivacyLedger
    from tests.private_names import declared_columns, event_from_json, event_to_json

    def rows(here: Path, data: bytes) -> Any:
        path = here / f"rows.{name}"
        path.write_bytes(data)
        opened = open_rows(path, **({"label": "kind"} if name in ("parquet", "feather") else {}))
        return [np.isfinite(block).all() for block in opened.blocks()], opened.labels

    def table(here: Path, data: bytes) -> Any:
        path = here / "rows.csv"
        path.write_bytes(data)
        return files.read_rows(
            path, "--private", {"--label-column": "kind"}, files.TextForm(), ("--labels", None)
        )

    def model(here: Path, data: bytes) -> Any:
        path = here / "m.safetensors"
        path.write_bytes(data)
        loaded = skmixdp.load(path)
        return loaded.predict(np.zeros((1, loaded.n_features_in_)))

    arrays, texts = files.parts_of(files.models()[1][1])

    def text_of_model(here: Path, data: bytes) -> Any:
        return model(here, files.with_checksum(arrays, texts | {"model": data.decode("utf-8", "replace")}))

    def event(here: Path, data: bytes) -> Any:
        return event_from_json(data.decode("utf-8", "replace"))

    def columns(here: Path, data: bytes) -> Any:
        path = here / "columns.json"
        path.write_bytes(data)
        return declared_columns(path)

    def ledger(here: Path, data: bytes) -> Any:
        path = here / "l.sqlite"
        path.write_bytes(data)
        return str(PrivacyLedger(path).report())

    tables = {ending[1:]: [*contents] for ending, contents in files.row_files().items()}
    if name in ("npy", "npz", "parquet", "feather"):
        return rows, tables[name]
    others: dict[str, tuple[Callable[[Path, bytes], Any], list[bytes]]] = {
        "csv": (table, tables["csv"]),
        "safetensors": (model, [content for _, content in files.models()]),
        "model": (text_of_model, [texts["model"].encode()]),
        "event": (event, [event_to_json(event).encode() for event in files.EVENTS]),
        "columns": (columns, [json.dumps(files.COLUMNS).encode()]),
        "sqlite": (ledger, [files.ledger_bytes()]),
    }
    return others[name]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
