"""``python -m benchmarks.serving``: the time of predicting one row, compared with scikit-learn.

A head of each size is fitted, with and without whitening of the rows, and scikit-learn's
``LogisticRegression`` on the same rows. The candidates take turns, and each time is the smallest of several,
so that other work on the machine counts little.
"""

import argparse
import timeit
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from skmixdp import MixedDPLogisticRegression, RowMapping

#: Numbers of features and classes.
SIZES = ((64, 10), (512, 10), (2048, 100))


def candidates(n_features: int, n_classes: int) -> dict[str, Callable[[], Any]]:
    """Ways to predict the probabilities of one row, by name; ONNX is left out if it is not installed."""
    X, y = make_classification(
        20 * n_classes,
        n_features,
        n_informative=min(n_features // 2, 20),
        n_classes=n_classes,
        n_clusters_per_class=1,
        random_state=0,
    )
    n_public = 5 * n_classes
    private = MixedDPLogisticRegression(classes=range(n_classes), rows=RowMapping(whiten=True))
    bare, plain = (
        MixedDPLogisticRegression("adamix", classes=range(n_classes)),
        LogisticRegression(max_iter=5),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows and few iterations, since only predictions are timed
        for head in (private, bare):
            head.fit(X[n_public:], y[n_public:], X_pub=X[:n_public], y_pub=y[:n_public])
        plain.fit(X, y)
    row, pipeline = X[:1].copy(), private.to_sklearn()
    found: dict[str, Callable[[], Any]] = {
        "scikit-learn": lambda: plain.predict_proba(row),
        "skmixdp": lambda: private.predict_proba(row),
        "skmixdp, not whitened": lambda: bare.predict_proba(row),
        "to_sklearn": lambda: pipeline.predict_proba(row),
    }
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return found
    model = private.to_onnx().SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found["to_onnx"] = lambda: session.run(["probabilities"], {"X": row})
    return found


def measure(
    sizes: Sequence[tuple[int, int]] = SIZES, *, repeats: int = 15, number: int = 200
) -> pd.DataFrame:
    """Microseconds of each candidate and their ratio to scikit-learn, in a row for each size."""
    rows = []
    with threadpool_limits(1):
        for n_features, n_classes in sizes:
            ways = candidates(n_features, n_classes)
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(repeats):
                for name, predict in ways.items():
                    times[name].append(timeit.timeit(predict, number=number) / number)
            best = {name: float(np.min(found)) for name, found in times.items()}
            rows += [
                {
                    "d_in": n_features,
                    "k": n_classes,
                    "method": name,
                    "microseconds": 1e6 * seconds,
                    "ratio": seconds / best["scikit-learn"],
                }
                for name, seconds in best.items()
            ]
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args(arguments)
    print(measure(repeats=options.repeats).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
