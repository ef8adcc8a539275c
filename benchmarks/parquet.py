"""``python -m benchmarks.parquet --out results/parquet``: steps over more Parquet rows than memory holds.

The rows are made row group by row group and written to files in ``--out``, which are removed afterwards. With
``--repeat``, one file stands for several of the same name, so that 100,000,000 rows need the disk of fewer.
Decoded and preprocessed rows take 164 bytes a row of the system's temporary folder meanwhile.
Writes ``parquet.md``: time and memory of a pass, which is the private part of one step.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from skmixdp._rows.row_map import RowMap
from skmixdp.datasets import open_rows

from .scale import Figures, anonymous_mib, one_pass, peak_anonymous_mib, spent

Array = NDArray[Any]

_D, _K = 20, 3

#: Rows of a row group: what is read at a time.
_GROUP = 500_000

#: Rows of a file, at most.
_FILE = 10_000_000


def write_file(path: Path, n_rows: int, seed: int) -> None:
    """Rows around three centres in single precision, with their labels, in row groups."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((_K, _D), dtype=np.float32)
    names = [f"x{j}" for j in range(_D)]
    schema = pa.schema([(name, pa.float32()) for name in names] + [("label", pa.int8())])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, n_rows, _GROUP):
            y = rng.integers(_K, size=min(_GROUP, n_rows - start), dtype=np.int8)
            columns = [rng.standard_normal(len(y), dtype=np.float32) + centres[y, j] for j in range(_D)]
            file.write_table(pa.table([*columns, y], schema=schema))


def measure(folder: Path, n_rows: int, repeat: int, passes: int, figures: Figures) -> None:
    """The table of one size: ``repeat`` times the rows that are written."""
    written = n_rows // repeat
    paths = [folder / f"rows{i}.parquet" for i in range(-(-written // _FILE))]
    try:
        for i, path in enumerate(paths):
            write_file(path, min(_FILE, written - i * _FILE), seed=i)
        disk = sum(path.stat().st_size for path in paths) / 2**30
        figures.tell("files", f"{len(paths)} of {disk:.1f} GiB together, each listed {repeat} times")
        _measured(paths * repeat, passes, figures.tell)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _measured(paths: list[Path], passes: int, tell: Callable[[str, object], None]) -> None:
    before = anonymous_mib()
    table = open_rows(paths, label="label")
    y = table.labels
    assert y is not None
    n_rows = table.shape[0]
    tell("rows, features, classes", f"{n_rows:,} x {_D}, {_K}")
    row_map = RowMap(np.zeros(_D), True, 0.3)
    W = np.random.default_rng(1).standard_normal((_K, _D + 1))
    found: dict[str, Any] = {}

    def read() -> None:
        for block in table.blocks():
            block.sum()

    def steps() -> None:
        found["opened"] = spent(lambda: found.update(rows=make()))
        step = one_pass(found["rows"], W)
        found["passes"] = [spent(step) for _ in range(passes)]

    def make() -> Any:
        return table.private_rows(y, row_map, np.dtype(np.float32), exact=False)

    peak = peak_anonymous_mib(steps)
    wall, cpu = (statistics.median(getattr(s, what) for s in found["passes"]) for what in ("wall", "cpu"))
    tell("checks in advance", found["opened"])
    tell("a step: one pass over all rows", f"{wall:.1f} s ({cpu:.1f} s CPU)")
    tell("a step, CPU time for a million rows", f"{cpu / n_rows * 1e9:.0f} ms")
    tell(f"peak RssAnon (before: {before:.0f} MiB)", f"{peak:.0f} MiB")
    tell("decoding all rows, and nothing else", spent(read))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--repeat", type=int, default=1, help="how often each file is listed")
    parser.add_argument("--passes", type=int, default=3)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        measure(given.out, given.rows, given.repeat, given.passes, figures := Figures())
    (given.out / "parquet.md").write_text(figures.text)


if __name__ == "__main__":
    main()
