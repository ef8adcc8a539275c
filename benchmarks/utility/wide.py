"""Wide tables and columns far from 0, of made-up and census rows.

``python -m benchmarks.utility.wide [CENSUS]`` writes ``wide.md``. The folder of the census, if it is there,
has ``train.csv.xz`` and ``test.csv.xz`` with a column ``income``.
"""

import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, RowMapping, private_pipeline
from skmixdp.preprocessing import TableEncoder

from .problems import Array
from .tables import markdown

_SEEDS = range(3)
_N, _N_TEST = 20_000, 5_000


def head(seed: int, **parameters: Any) -> MixedDPLogisticRegression:
    return MixedDPLogisticRegression(epsilon=1.0, classes=[0, 1], random_state=seed, **parameters)


def area(model: Any, X: Any, y: Array, X_test: Any, y_test: Array) -> float:
    """Area under the curve, in percent."""
    scores = model.fit(X, y).predict_proba(X_test)[:, 1]
    return 100 * float(roc_auc_score(y_test, scores))


def several(measure: Callable[[int], Iterable[float]]) -> list[str]:
    """Means over the seeds with their standard errors."""
    found = np.array([list(measure(seed)) for seed in _SEEDS])
    errors = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return [f"{mean:.1f} ± {error:.1f}" for mean, error in zip(found.mean(axis=0), errors, strict=True)]


def of_width(width: int, seed: int) -> list[float]:
    """Through an encoder, bare, with true scales, and additive: age, income, and zeros and ones."""
    rng = np.random.default_rng(seed)
    n = _N + _N_TEST
    flags = (rng.random((n, width - 2)) < 0.1).astype(float)
    X = np.column_stack([rng.uniform(18, 80, n), rng.lognormal(10, 0.6, n), flags])
    score = 0.1 * (X[:, 0] - 48) + flags[:, :5].sum(axis=1) - 0.5
    y = (score + rng.logistic(size=n) > 0).astype(int)
    frame = pd.DataFrame(X, columns=[f"c{place}" for place in range(width)])
    kinds = {name: "number" if place < 2 else "boolean" for place, name in enumerate(frame)}
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    encoded = private_pipeline(TableEncoder(kinds), head(seed))
    tried: list[tuple[Any, Any]] = [(encoded, frame), (head(seed), X)]
    tried += [(head(seed, scale=False, rows=RowMapping(norm="clip")), scaled)]
    tried += [(AdditiveDPClassifier(epsilon=1.0, classes=[0, 1], random_state=seed), X)]
    return [area(model, rows[:_N], y[:_N], rows[_N:], y[_N:]) for model, rows in tried]


def of_census(folder: Path, seed: int) -> list[float]:
    """Census with its categories listed: encoder, bare, and true scales."""
    train, test = (pd.read_csv(folder / f"{name}.csv.xz") for name in ("train", "test"))
    y, y_test = (table.pop("income").str.contains(">").astype(int).to_numpy() for table in (train, test))
    kinds = {
        name: "number" if cells.dtype.kind in "iu" else sorted(set(cells.dropna()) | set(test[name].dropna()))
        for name, cells in train.items()
    }
    model = private_pipeline(TableEncoder(kinds), head(seed))
    found = [area(model, train, y, test, y_test)]
    X, X_test = model[0].transform(train), model[0].transform(test)
    center, spread = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    true = head(seed, scale=False, rows=RowMapping(norm="clip"))
    found.append(area(head(seed), X, y, X_test, y_test))
    return [*found, area(true, (X - center) / spread, y, (X_test - center) / spread, y_test)]


def at_offset(offset: float, n_far: int, dtype: str, seed: int) -> list[float]:
    """Accuracy in percent with columns this many spreads from 0, and with the same columns centred."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(_N + _N_TEST, n_far + 3))
    score = Z[:, :n_far].sum(axis=1) / np.sqrt(n_far) + 0.3 * Z[:, n_far:].sum(axis=1)
    y = (score + rng.logistic(size=len(Z)) > 0).astype(int)
    moved = (Z + offset * (np.arange(n_far + 3) < n_far)).astype(dtype)
    return [100 * head(seed).fit(X[:_N], y[:_N]).score(X[_N:], y[_N:]) for X in (moved, Z)]


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    folders = [Path(folder) for folder in sys.argv[1:2]]
    lines = [[str(width), *several(partial(of_width, width))] for width in (50, 100, 101, 200, 1000)]
    census = [["census, 108 columns", *several(partial(of_census, folder))] for folder in folders]
    cases = [(offset, 1, "float64") for offset in (1e3, 65536.0, 1e6, 1e9)]
    cases += [(1e6, 10, "float64"), (1e6, 40, "float64"), (1e6, 1, "float32")]
    far = [
        [f"{offset:g}", str(n_far), dtype, *several(partial(at_offset, offset, n_far, dtype))]
        for offset, n_far, dtype in cases
    ]
    parts = [
        (
            "Age, income, and zeros and ones",
            ["columns", "encoder", "bare array", "true scales", "additive, bare"],
            lines,
        ),
        ("Census with its categories listed", ["table", "encoder", "bare array", "true scales"], census),
        ("Columns far from 0", ["spreads from 0", "columns", "type", "as they are", "centred"], far),
    ]
    text = "\n\n".join(f"## {title}\n\n{markdown(names, rows)}" for title, names, rows in parts if rows)
    Path(__file__).with_suffix(".md").write_text(f"{_NOTE}\n\n{text}\n", encoding="utf-8")


_NOTE = f"""# Wide tables, and columns far from 0

{_N} private rows, no public ones, epsilon 1, means over {len(_SEEDS)} seeds with their standard errors. The
first two parts have the area under the curve in percent, the third the accuracy. True scales are means and
deviations of all private rows, without noise. `python -m benchmarks.utility.wide` writes this page."""

if __name__ == "__main__":
    main()
