"""Default classifiers as the budget grows, compared with logistic regression.

``python -m benchmarks.utility.budgets`` prints one line for each table, number of public rows and epsilon. It
needs the extra ``bench``. A line is marked if accuracy or log-loss is worse than at the next smaller epsilon
by more than two paired standard errors plus .3 points of accuracy or .02 of log-loss.
"""

import math
import sys
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression

from .tabular import split

#: Tables on which constants of the library were chosen, and those that were looked at once.
CHOSEN = ("iris", "breast cancer", "digits", "spam7", "attrition")
HELD_OUT = ("wine", "churn", "orange juice", "penguins", "leaves")

EPSILONS = (8.0, 30.0, 1e3, 1e5, 1e8)

#: What a larger budget may cost, besides chance.
_TOLERATED = {"accuracy": 0.003, "log_loss": 0.02}


def fitted(table: str, shots: int, epsilon: float, seed: int) -> dict[str, float]:
    """Accuracy and log-loss of one fit on the test rows of a split; epsilon ``inf`` fits without privacy."""
    X, y, X_pub, y_pub, X_test, y_test = split(table, shots, seed)
    classes = np.unique(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if epsilon == math.inf:
            plain = LogisticRegressionCV(
                Cs=np.logspace(-3, 4, 8), scoring="neg_log_loss", cv=4, max_iter=1000
            )
            model = make_pipeline(StandardScaler(), plain)
            model.fit(np.concatenate([X, X_pub]) if shots else X, np.concatenate([y, y_pub]) if shots else y)
            n_iter = 0
        else:
            model = MixedDPLogisticRegression(epsilon=epsilon, delta=1e-5, random_state=seed, classes=classes)
            model.fit(X, y, **({"X_pub": X_pub, "y_pub": y_pub} if shots else {}))
            n_iter = model.n_iter_
    P = model.predict_proba(X_test)
    right = model.classes_[P.argmax(axis=1)] == y_test
    return {
        "accuracy": float(right.mean()),
        "log_loss": log_loss(y_test, np.clip(P, 1e-15, 1), labels=model.classes_),
        "n_iter": n_iter,
    }


def is_worse(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """The measures by which fits with a larger budget are worse; one row for each seed."""
    found = []
    for name, tolerated in _TOLERATED.items():
        loss = (before[name] - after[name]) * (1 if name == "accuracy" else -1)
        if loss.mean() > tolerated + 2 * loss.std(ddof=1) / math.sqrt(len(loss)):
            found.append(name)
    return found


def main(tables: Sequence[str], n_seeds: int = 5) -> None:
    """Print the figures: means over the seeds."""
    print("| table | public rows per class | epsilon | steps | accuracy | log-loss | worse |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for table in tables:
        for shots in (0, 5):
            before = None
            for epsilon in (*EPSILONS, math.inf):
                runs = pd.DataFrame([fitted(table, shots, epsilon, seed) for seed in range(n_seeds)])
                worse = [] if before is None or epsilon == math.inf else is_worse(before, runs)
                before, mean = runs, runs.mean()
                print(
                    f"| {table} | {shots} | {epsilon:g} | {mean['n_iter']:.0f} "
                    f"| {100 * mean['accuracy']:.1f} | {mean['log_loss']:.3f} | {', '.join(worse)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:] or (*CHOSEN, *HELD_OUT))
