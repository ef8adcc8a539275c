"""``python -m benchmarks.utility.rare``: two classes of which one is rare.

The table Default of ISLR: 10,000 customers, of whom 3.3% do not repay. Each seed draws 3,000 test rows. There
are 10 public rows of each class, or none. With public rows, 40 more of each class are held out of the fit and
of the private rows. They choose a threshold at which 70% of the rare ones are found. A private threshold aims
at the same by a noisy histogram of a fifth of the private rows.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import train_test_split

from benchmarks.utility.tabular import split
from skmixdp import MixedDPLogisticRegression
from skmixdp.model_selection import private_evaluation

Array = NDArray[Any]

TABLE = "Default"

#: Public rows of each class in the fit, and held out of it.
_FITTED, _HELD_OUT = 10, 40

#: Share of the rare class that the chosen threshold finds among public rows held out.
_RECALL = 0.7

SETTINGS: dict[str, dict[str, Any]] = {
    "class_weight='balanced'": {"class_weight": "balanced"},
    "logit_adjustment=0.5": {"logit_adjustment": 0.5},
    "logit_adjustment=1": {"logit_adjustment": 1.0},
}


def predictions(with_public: bool, epsilon: float, seed: int) -> Iterator[tuple[str, Array, Array]]:
    """Name of a remedy, true classes of the test rows, and predicted ones."""
    shots = _FITTED + _HELD_OUT if with_public else 0
    X, y, X_pub, y_pub, X_test, y_test = split(TABLE, shots, seed)
    places = [np.flatnonzero(y_pub == label) for label in (0, 1)]
    fitted, held_out = (
        np.concatenate([own[part] for own in places]) for part in (slice(_FITTED), slice(_FITTED, None))
    )
    public = {"X_pub": X_pub[fitted], "y_pub": y_pub[fitted]} if with_public else {}

    def head(rows: Any = slice(None), **parameters: Any) -> MixedDPLogisticRegression:
        clf = MixedDPLogisticRegression(epsilon=epsilon, classes=[0, 1], random_state=seed, **parameters)
        return clf.fit(X[rows], y[rows], **public)

    clf = head()
    proba = clf.predict_proba(X_test)[:, 1]
    yield "default", y_test, clf.predict(X_test)
    for threshold in (0.2, 0.1):
        yield f"default, threshold {threshold}", y_test, proba >= threshold
    kept, held = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed)
    finder = head(kept)
    evaluation = private_evaluation(finder, X[held], y[held], epsilon=epsilon, random_state=seed)
    positive = finder.predict_proba(X_test)[:, 1] >= evaluation.threshold("recall", _RECALL)
    yield "default, private threshold by a fifth of the rows", y_test, positive
    if with_public:
        rare = held_out[y_pub[held_out] == 1]
        threshold = np.quantile(clf.predict_proba(X_pub[rare])[:, 1], 1 - _RECALL)
        yield "default, threshold by public rows held out", y_test, proba >= threshold
    for name, parameters in SETTINGS.items():
        yield name, y_test, head(**parameters).predict(X_test)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of seeds
    for with_public in (False, True):
        found: dict[str, list[tuple[float, float, float]]] = {}
        for seed in range(args.seeds):
            for name, y, predicted in predictions(with_public, args.epsilon, seed):
                precision = precision_score(y, predicted, zero_division=0)
                values = float(np.mean(predicted == y)), recall_score(y, predicted), precision
                found.setdefault(name, []).append(values)
        print(f"\n| {_FITTED if with_public else 0} public rows per class | accuracy | recall | precision |")
        print("| --- | --- | --- | --- |")
        for name, runs in found.items():
            spread = zip(np.mean(runs, axis=0), np.std(runs, axis=0), strict=True)
            print(f"| {name} | {' | '.join(f'{mean:.2f} ± {std:.2f}' for mean, std in spread)} |")


if __name__ == "__main__":
    main()
