"""The picture of the README: accuracy against epsilon on a real table and on real features.

Run ``python -m benchmarks.utility.front``. It needs the data of Adult and of BANKING77 (see
:mod:`benchmarks.utility.data.files`), and the environments of ``make interpret`` and ``make diffprivlib``.
It writes ``front.md`` here and ``docs/images/front.png``.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, private_pipeline
from skmixdp.preprocessing import TableEncoder

from .. import elsewhere
from .data import adult, banking77
from .data.files import data_folder

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-5
SEEDS = range(2)
PUBLIC_PER_CLASS = 5

#: Settings of DP-EBM and inverse penalties of diffprivlib, the first as by default. Their best is shown.
SETTINGS = (
    {},
    *(
        {"max_rounds": rounds, "max_bins": bins, "learning_rate": 0.1}
        for rounds in (30, 100)
        for bins in (8, 32)
    ),
)
PENALTIES = (1.0, 0.1, 0.01, 0.001)

HERE = Path(__file__).parent
PICTURE = HERE.parent.parent / "docs" / "images" / "front.png"

#: Bounds of the numbers of Adult, from the survey's description.
BOUNDS = {**adult.BOUNDS, **{name: (0, most) for name, most in adult.DOLLARS.items()}}

Results = dict[str, dict[float, list[float]]]


def table() -> Results:
    """Accuracies on the test rows of Adult."""
    folder, names = (
        data_folder("adult"),
        [*BOUNDS, *(name for name in adult.CATEGORIES if name not in BOUNDS)],
    )
    train, test = (pd.read_csv(folder / f"{part}.csv.xz") for part in ("train", "test"))
    y, y_test = ((part["income"].str.strip() == ">50K").to_numpy().astype(int) for part in (train, test))
    X, X_test = (part[names].apply(_stripped) for part in (train, test))
    declared = {name: BOUNDS.get(name) or adult.CATEGORIES[name].split() for name in names}
    wide, wide_test = adult.features(train), adult.features(test)
    coded, coded_test = (_codes(part, declared) for part in (X, X_test))
    found: Results = {}
    boosting = HistGradientBoostingClassifier(random_state=0).fit(coded, y)
    found["no privacy"] = {epsilon: [boosting.score(coded_test, y_test)] for epsilon in EPSILONS}
    for seed in SEEDS:
        for epsilon in EPSILONS:
            head = AdditiveDPClassifier(epsilon=epsilon, delta=DELTA, classes=[0, 1], random_state=seed)
            model = private_pipeline(TableEncoder(declared), head).fit(X, y)
            _add(found, "skmixdp", epsilon, model.score(X_test, y_test))
        predicted = elsewhere.fit_machines(
            X=coded,
            X_test=coded_test,
            y=y,
            nominal=np.array([name not in BOUNDS for name in names]),
            bounds=np.array([BOUNDS.get(name, (0, 0)) for name in names], dtype=float),
            epsilons=EPSILONS,
            delta=DELTA,
            seed=seed,
            settings=json.dumps(SETTINGS),
        )
        for epsilon, each in zip(EPSILONS, predicted, strict=True):
            best = max(float(np.mean((one > 0.5) == y_test)) for one in each)
            _add(found, f"DP-EBM, best of {len(SETTINGS)}", epsilon, best)
        _add_diffprivlib(found, wide, y, wide_test, y_test, seed)
    return found


def features() -> Results:
    """Accuracies on the test rows of BANKING77."""
    rows = banking77.load(Path())
    X, y, X_test, y_test = rows.X, rows.y, rows.X_test, rows.y_test
    found: Results = {}
    score = LogisticRegression(C=10.0, max_iter=1000).fit(X, y).score(X_test, y_test)
    found["no privacy"] = {epsilon: [score] for epsilon in EPSILONS}
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(y))
        ranks = pd.Series(y[order]).groupby(y[order]).cumcount().to_numpy()
        public, private = order[ranks < PUBLIC_PER_CLASS], order[ranks >= PUBLIC_PER_CLASS]
        alone = LogisticRegression(C=10.0, max_iter=1000).fit(X[public], y[public]).score(X_test, y_test)
        for epsilon in EPSILONS:
            head = MixedDPLogisticRegression(epsilon=epsilon, delta=DELTA, random_state=seed)
            head.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
            _add(found, "skmixdp, 5 public rows a class", epsilon, head.score(X_test, y_test))
            _add(found, "those public rows alone", epsilon, alone)
    _add_diffprivlib(found, X, y, X_test, y_test, seed=0)
    return found


def _add_diffprivlib(
    found: Results, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int
) -> None:
    """The best penalty for each budget, on the test rows."""
    fits = [elsewhere.fit(X, y, X_test, y_test, epsilons=EPSILONS, seed=seed, C=C) for C in PENALTIES]
    for epsilon, each in zip(EPSILONS, zip(*fits, strict=True), strict=True):
        name = f"diffprivlib (delta 0), best of {len(PENALTIES)}"
        _add(found, name, epsilon, max(fit.accuracy for fit in each))


def _add(found: Results, name: str, epsilon: float, accuracy: float) -> None:
    found.setdefault(name, {}).setdefault(epsilon, []).append(float(accuracy))


def _stripped(column: pd.Series) -> pd.Series:
    return column if pd.api.types.is_numeric_dtype(column) else column.str.strip()


def _codes(rows: pd.DataFrame, declared: dict[str, object]) -> np.ndarray:
    """Numbers as they are, and declared categories as numbers from 1; 0 for others."""
    columns = []
    for name, known in declared.items():
        places = (
            {text: place for place, text in enumerate(known, start=1)} if isinstance(known, list) else None
        )
        columns.append(rows[name] if places is None else rows[name].map(places).fillna(0))
    return np.column_stack(columns).astype(float)


def lines(title: str, found: Results) -> list[str]:
    """A table in Markdown: mean accuracy, and the standard deviation over seeds where there are several."""
    rows = [f"## {title}", "", f"| | {' | '.join(f'epsilon {each:g}' for each in EPSILONS)} |"]
    rows.append(f"| --- |{' --- |' * len(EPSILONS)}")
    for name, of_epsilon in found.items():
        cells = [_cell(of_epsilon[epsilon]) for epsilon in EPSILONS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return [*rows, ""]


def _cell(values: list[float]) -> str:
    spread = f" ± {100 * np.std(values, ddof=1):.1f}" if len(set(values)) > 1 else ""
    return f"{100 * np.mean(values):.1f}{spread}"


def draw(parts: dict[str, Results]) -> None:
    """Both panels, with labels at the ends of the lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    colours = {"skmixdp": "#0072b2", "DP-EBM": "#d55e00", "diffprivlib": "#009e73"}
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for ax, (title, found) in zip(panels, parts.items(), strict=True):
        for name, of_epsilon in found.items():
            colour = colours.get(name.split(",")[0].split(" (")[0], "0.45")
            values = [100 * np.mean(of_epsilon[epsilon]) for epsilon in EPSILONS]
            dashed = "--" if colour == "0.45" else "-"
            ax.plot(EPSILONS, values, dashed, color=colour, marker="o" if dashed == "-" else None, label=name)
        ax.set_xscale("log")
        ax.set_xticks(EPSILONS, [f"{each:g}" for each in EPSILONS])
        ax.minorticks_off()
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("epsilon (smaller is more private)")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("test accuracy (%)")
    figure.savefig(PICTURE, dpi=130)


def main() -> None:
    """Measure, and write the page and the picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = {
            "A table: Adult (32,561 rows)": table(),
            "Text features: BANKING77 (10,003 rows, 77 classes)": features(),
        }
    text = [(HERE / "front.md").read_text().split("\n## A table")[0].rstrip(), ""]
    text += [line for title, found in parts.items() for line in lines(title, found)]
    (HERE / "front.md").write_text("\n".join(text).rstrip() + "\n")
    draw(parts)


if __name__ == "__main__":
    main()
