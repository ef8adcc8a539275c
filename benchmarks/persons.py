"""``python -m benchmarks.persons``: a pass over the rows of persons, as a multiple of one over the same rows.

Persons have ten rows each, or ``1 / u`` of them for uniform u, at most 500. All passes take turns in one
process, and the first of each does not count. Printed is the ratio of the medians of CPU times, in Markdown.
"""

import time
from functools import partial

import numpy as np

from skmixdp._linear.losses import SoftmaxLoss
from skmixdp._rows.persons import PersonTable
from skmixdp._rows.row_map import RowMap
from skmixdp._rows.source import MeanClip, PrivateQuery, Request
from skmixdp._rows.table import ArrayTable
from skmixdp.components import L2Clip
from skmixdp.components.clipping import clipped_residuals, unclipped_residuals

#: Rows, features and classes.
SHAPES = ((50_000, 512, 10), (10_000, 384, 77), (200_000, 20, 3))

_THRESHOLD, _TURNS = 0.3, 12


def ratios(n: int, d: int, k: int) -> list[float]:
    """The ratios for persons with ten rows each, and with a heavy tail."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, d)) / np.sqrt(d)).astype(np.float32)
    y, W = rng.integers(0, k, n).astype(np.int8), rng.normal(size=(k, d)).astype(np.float32)
    sizes = np.minimum(500, (1 / rng.random(n)).astype(int))
    table, dtype, row_map = ArrayTable(X), np.dtype(np.float32), RowMap(None, False, None)
    sources = [table.private_rows(y, row_map, dtype, exact=False)]
    for ids in (np.arange(n) // 10, np.repeat(np.arange(n), sizes)[:n]):
        persons = PersonTable(table, ids, int(ids.max()) + 1, "person")
        sources.append(persons.private_rows(y, row_map, dtype, exact=False))
    loss, clip = SoftmaxLoss(k), L2Clip(_THRESHOLD)
    contribute = partial(clipped_residuals, loss=loss, clip=clip)
    mean_clip = MeanClip(partial(unclipped_residuals, loss=loss), clip)
    request = Request(PrivateQuery(W, contribute, (), clip_threshold=_THRESHOLD, mean_clip=mean_clip))
    times = np.empty((_TURNS, len(sources)))
    for turn in times:
        for i, source in enumerate(sources):
            start = time.process_time()
            source.private_sums([request])
            turn[i] = time.process_time() - start
    medians = np.median(times[1:], axis=0)
    return (medians[1:] / medians[0]).tolist()


def main() -> None:
    """Print a table."""
    print("| rows x features x classes | 10 rows each | heavy tail |\n| --- | --- | --- |")
    for n, d, k in SHAPES:
        print(f"| {n:,} x {d} x {k} | {' | '.join(f'{ratio:.2f}' for ratio in ratios(n, d, k))} |")


if __name__ == "__main__":
    main()
