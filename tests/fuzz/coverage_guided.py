"""Files of bytes that atheris changes by what code they reach.

Arguments are the format, the number of cases, a seed and a file for the counts.

It runs in a process of its own, since libFuzzer ends its process. A file has the number of cases and their
endings, as JSON, after each of them. Exit codes: 0 done, 3 no atheris here, anything else a failure.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What may be fuzzed, and the folder of the package that reads it.
FORMATS = ("npy", "npz", "parquet", "feather", "csv", "safetensors", "model", "event", "columns", "sqlite")

#: Longest file that is tried.
LARGEST = 8192


def main(name: str, n_cases: int, seed: int, counts: Path) -> int:
    """Fuzz a format; libFuzzer ends the process, so this returns only without atheris."""
    try:
        import atheris
    except ImportError:
        return 3
    read = ("_rows.files", "_rows.shards", "_cli", "estimators._exports", "privacy.ledger")
    with atheris.instrument_imports(include=[f"skmixdp.{room}" for room in read]):
        from . import files
        from .harness import Tally, attempt, case, check_message, fresh_folder

    tally = Tally()
    reader, contents = _format(files, name)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content)

    def one(data: bytes) -> None:
        with fresh_folder() as here, case(tally, here):
            end = attempt(
                tally, lambda: reader(here, data), *files.BAD_FILE, KeyError, secrets=files.SECRET_SIGNS
            )
            if end.error is not None:
                check_message(end.message.replace("\n", " "))
        counts.write_text(json.dumps({"cases": tally.cases, "ended": tally.ended}))

    options = [
        f"-runs={n_cases}",
        f"-seed={seed}",
        f"-max_len={LARGEST}",
        "-print_final_stats=0",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", "-timeout=120", str(folder)], one)
    atheris.Fuzz()
    return 0


def _format(files: Any, name: str) -> tuple[Callable[[Path, bytes], Any], list[bytes]]:
    """What reads the bytes, and whole files to begin with."""
    import numpy as np

    import skmixdp
    from skmixdp._cli.columns import declared_columns
    from skmixdp.datasets import open_rows
    from skmixdp.privacy import PrivacyLedger
    from skmixdp.privacy.ledger._records import event_from_json, event_to_json

    def rows(here: Path, data: bytes) -> Any:
        path = here / f"rows.{name}"
        path.write_bytes(data)
        opened = open_rows(path, **({"label": "kind"} if name in ("parquet", "feather") else {}))
        return [np.isfinite(block).all() for block in opened.blocks()], opened.labels

    def table(here: Path, data: bytes) -> Any:
        path = here / "rows.csv"
        path.write_bytes(data)
        return files.read_labelled(path, "--private", "kind", None, "--labels", files.TextForm())

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
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]).absolute()))
