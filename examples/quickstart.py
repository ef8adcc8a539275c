"""Six ways to train a digit classifier, four of them private, on real images.

scikit-learn has 1,797 images of handwritten digits. In each split, 400 images are for testing. 5
labelled images per class are public, and the other 1,347 are private. The methods are:

* Default: ``MixedDPLogisticRegression`` with its defaults, ``algorithm="auto"``.
* AdaMix: the paper's algorithm, with this library's rule for the step size.
* Warm-started NGD: noisy gradient descent from the public fit.
* Fully-Private: noisy gradient descent from zero. All 1,397 training images are private, so
  there is no public mean to centre them by.
* Only-Public: the public images alone, fitted by scikit-learn. AdaMix and warm-started NGD start
  from this head: same rows, same penalty, same intercept column.
* Non-private: scikit-learn on all training images.

Nothing is tuned, except the non-private C, by cross-validation. The noise has no seed, because a
seeded release is not private. So the numbers change a little from run to run.

Run ``python examples/quickstart.py --out results``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize
from tqdm.auto import tqdm

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import PrivacyUtilityDisplay

Array = NDArray[Any]

EPSILONS = (0.5, 1.0, 3.0)
DELTA = 1e-5
N_TEST = 400
N_PUBLIC_PER_CLASS = 5
CLASSES = np.arange(10)

#: The estimator's default penalty on the public fit, for rows of unit length.
PUBLIC_L2 = 0.2

TITLE = "Handwritten digits: test accuracy with 50 public and 1,347 private images"

ONLY_PUBLIC, NON_PRIVATE = "Only-Public", "Non-private"
FULLY_PRIVATE, NGD, ADAMIX, DEFAULT = "Fully-Private", "Warm-started NGD", "AdaMix", "Default"
METHODS = (DEFAULT, ADAMIX, NGD, FULLY_PRIVATE, ONLY_PUBLIC, NON_PRIVATE)
PRIVATE_METHODS = METHODS[:4]


@dataclass(frozen=True)
class Split:
    """Rows and labels of one split."""

    X_test: Array
    y_test: Array
    X_pub: Array
    y_pub: Array
    X_priv: Array
    y_priv: Array

    @property
    def X_train(self) -> Array:
        return np.concatenate([self.X_pub, self.X_priv])

    @property
    def y_train(self) -> Array:
        return np.concatenate([self.y_pub, self.y_priv])

    def unit_rows(self, X: Array) -> Array:
        """Rows centred by the public mean and scaled to unit length, as in the library."""
        return np.asarray(normalize(X - self.X_pub.mean(axis=0)))


def make_split(seed: int) -> Split:
    """Test, public and private rows, drawn by ``default_rng(seed)``."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    test, train = order[:N_TEST], order[N_TEST:]
    public = np.concatenate([train[y[train] == label][:N_PUBLIC_PER_CLASS] for label in CLASSES])
    private = np.setdiff1d(train, public)
    return Split(X[test], y[test], X[public], y[public], X[private], y[private])


# -- the six methods -----------------------------------------------------------------------


def fit_only_public(split: Split) -> Pipeline:
    """Logistic regression on the public rows, by scikit-learn: the head that AdaMix starts from."""
    rows = split.unit_rows(split.X_pub)
    # As in the library, the intercept is the coefficient of a constant column as strong as the
    # strongest direction of the rows, and is penalised with the rest.
    constant = np.linalg.norm(rows, ord=2) / np.sqrt(len(rows))

    def with_constant(X: Array) -> Array:
        return np.column_stack([split.unit_rows(X), np.full(len(X), constant)])

    strength = PUBLIC_L2 * (1 + constant**2)
    head = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-6, max_iter=1000)
    return make_pipeline(FunctionTransformer(with_constant), head).fit(split.X_pub, split.y_pub)


def fit_non_private(split: Split) -> Pipeline:
    """Logistic regression on all training rows, by scikit-learn, with C from cross-validation."""
    search = GridSearchCV(LogisticRegression(max_iter=5000), {"C": np.logspace(0, 2, 5)}, cv=5)
    model = make_pipeline(FunctionTransformer(split.unit_rows), search)
    return model.fit(split.X_train, split.y_train)


def fit_private(method: str, split: Split, epsilon: float) -> MixedDPLogisticRegression:
    """One of the private methods, with its defaults."""
    algorithm = {DEFAULT: "auto", ADAMIX: "adamix"}.get(method, "noisy-gd")
    clf = MixedDPLogisticRegression(algorithm, epsilon=epsilon, delta=DELTA)
    if method == FULLY_PRIVATE:
        return clf.set_params(init="zeros", classes=CLASSES).fit(split.X_train, split.y_train)
    return clf.fit(split.X_priv, split.y_priv, X_pub=split.X_pub, y_pub=split.y_pub)


def run(n_splits: int, n_draws: int) -> tuple[pd.DataFrame, str]:
    """Fit everything: a table with one row per fit, and the report of one default fit."""
    private_fits = [
        (method, epsilon, draw)
        for epsilon in EPSILONS
        for draw in range(n_draws)
        for method in PRIVATE_METHODS
    ]
    rows: list[dict[str, Any]] = []
    report = ""
    with tqdm(total=n_splits * (2 + len(private_fits)), desc="quickstart", unit="fit") as bar:
        for seed in range(n_splits):
            split = make_split(seed)
            for method, fit in ((ONLY_PUBLIC, fit_only_public), (NON_PRIVATE, fit_non_private)):
                accuracy = fit(split).score(split.X_test, split.y_test)
                rows.append({"method": method, "split": seed, "accuracy": accuracy})
                bar.update()
            for method, epsilon, draw in private_fits:
                clf = fit_private(method, split, epsilon)
                rows.append(
                    {
                        "method": method,
                        "epsilon": epsilon,
                        "delta": DELTA,
                        "split": seed,
                        "draw": draw,
                        "n_steps": clf.n_iter_,
                        "noise_multiplier": clf.privacy_.noise_multiplier,
                        "accuracy": clf.score(split.X_test, split.y_test),
                    }
                )
                if not report and method == DEFAULT and epsilon == 1:
                    report = str(clf.privacy_)
                bar.update()
    columns = ["method", "epsilon", "delta", "split", "draw", "n_steps", "noise_multiplier", "accuracy"]
    table = pd.DataFrame(rows, columns=columns)
    # Nullable integers: methods without noise have no draw and no steps.
    table = table.astype({"draw": "Int64", "n_steps": "Int64"})
    order = {method: rank for rank, method in enumerate(METHODS)}
    table = table.sort_values("method", key=lambda column: column.map(order), kind="stable")
    return table.reset_index(drop=True), report


# -- tables and figure ---------------------------------------------------------------------


def _scores(table: pd.DataFrame, method: str, epsilon: float) -> pd.DataFrame:
    """Fits of a method at epsilon, or all fits of a method without a budget."""
    own = table[table["method"] == method]
    return own[own["epsilon"].isna() | (own["epsilon"] == epsilon)]


def accuracy_table(table: pd.DataFrame) -> list[list[str]]:
    """Mean and standard deviation of test accuracy in percent, methods down, epsilons across."""
    lines = [["method", *(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)]]
    for method in METHODS:
        cells = []
        for epsilon in EPSILONS:
            scores = 100 * _scores(table, method, epsilon)["accuracy"]
            cells.append(f"{scores.mean():.1f} ± {scores.std(ddof=1):.1f}")
        lines.append([method, *cells])
    return lines


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences and its 95% t-interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, differences: Sequence[float]) -> "Difference":
        """From one difference per split."""
        mean = float(np.mean(differences))
        error = float(np.std(differences, ddof=1)) / np.sqrt(len(differences))
        half = float(stats.t.ppf(0.975, len(differences) - 1)) * error
        return cls(mean, mean - half, mean + half)

    def verdict(self, first: str, second: str) -> str:
        """Which of the two is better, if the interval excludes 0."""
        if self.low > 0:
            return f"{first} is better"
        if self.high < 0:
            return f"{second} is better"
        return "not told apart"


def paired_difference(table: pd.DataFrame, method: str, epsilon: float) -> Difference:
    """Default minus a method in points of test accuracy, draws averaged within each split."""
    ours, theirs = (
        _scores(table, name, epsilon).groupby("split")["accuracy"].mean() for name in (DEFAULT, method)
    )
    return Difference.of((100 * (ours - theirs)).to_list())


def difference_table(table: pd.DataFrame) -> list[list[str]]:
    """The default against each other method at each epsilon, in points of test accuracy."""
    lines = [["Default minus", "epsilon", "difference", "95% interval", "verdict"]]
    for method in METHODS[1:]:
        for epsilon in EPSILONS:
            found = paired_difference(table, method, epsilon)
            mean, low, high = (f"{value:+z.2f}" for value in (found.mean, found.low, found.high))
            verdict = found.verdict(DEFAULT, method)
            lines.append([method, f"{epsilon:g}", mean, f"{low} to {high}", verdict])
    return lines


def markdown(lines: list[list[str]]) -> str:
    """A Markdown table that is also legible as plain text; the first line is the header."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width for width in widths]
    padded = (
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        for line in [lines[0], rule, *lines[1:]]
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def summary(table: pd.DataFrame) -> str:
    """The two tables in Markdown, with notes on how to read them."""
    n_splits, n_draws = table["split"].nunique(), table["draw"].nunique()
    return f"""\
{TITLE}; delta = {DELTA:g}; no tuning.

Mean and standard deviation in percent over {n_splits * n_draws} fits: {n_splits} splits times {n_draws} noise
draws. {ONLY_PUBLIC} and {NON_PRIVATE} have no noise and no epsilon; theirs are over the {n_splits} splits.

{markdown(accuracy_table(table))}

The next table shows Default minus each other method, in points of test accuracy. Differences are
paired by split, after averaging over the noise draws. The table has their mean over the splits and
its 95% t-interval. A method is called better only if the interval excludes 0. The intervals are not
corrected for their number, and the splits share images. Read those that end near 0 with care.

{markdown(difference_table(table))}
"""


def picture(table: pd.DataFrame, path: Path) -> None:
    """Accuracy against epsilon."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    display = PrivacyUtilityDisplay.from_results(table, delta=DELTA, ax=figure.subplots())
    display.ax_.set_title(TITLE, loc="left", fontsize=11)
    figure.savefig(path, dpi=200)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the comparison and write its results."""
    parser = argparse.ArgumentParser(description="Private digit classifiers, compared.")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder to write to")
    parser.add_argument("--splits", type=int, default=5, help="splits of the images, at least 2")
    parser.add_argument("--draws", type=int, default=5, help="noise draws per split, at least 1")
    options = parser.parse_args(argv)
    if options.splits < 2:
        parser.error(f"--splits {options.splits} gives no interval; pass at least 2.")
    if options.draws < 1:
        parser.error(f"--draws {options.draws} fits nothing; pass at least 1.")
    options.out.mkdir(parents=True, exist_ok=True)

    table, report = run(options.splits, options.draws)
    text = summary(table)
    print(f"\n{text}\nOne default fit at epsilon 1:\n\n{report}\n")

    paths = [options.out / f"quickstart.{kind}" for kind in ("csv", "md", "png")]
    table.to_csv(paths[0], index=False)
    paths[1].write_text(f"# Quickstart results\n\n{text}", encoding="utf-8")
    picture(table, paths[2])
    print("Written:", *paths, sep="\n  ")


if __name__ == "__main__":
    main()
