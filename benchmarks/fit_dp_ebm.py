"""``python fit_dp_ebm.py rows.npz``: private explainable boosting machines, one for each budget and setting.

The file has ``X`` and ``X_test`` with categories as numbers from 0, ``nominal`` (which columns are
categories), ``y``, ``bounds`` of the columns, ``epsilons``, ``delta``, ``seed`` and ``settings`` (JSON: a
list of keyword arguments). A regression also has ``target``, the bounds of its targets. Predictions for
the test rows go to ``predicted`` in ``rows.out.npz`` next to it, of shape (n_epsilons, n_settings, n_test).
For two classes they are the second one's probabilities.

Run by the interpreter of another environment; it imports nothing of this folder.
"""

import json
import sys
import warnings

import numpy as np


def main(path: str) -> None:
    warnings.simplefilter("ignore")
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    rows = np.load(path)
    nominal = rows["nominal"]
    known = {
        "delta": float(rows["delta"]),
        "feature_types": ["nominal" if category else "continuous" for category in nominal],
        "privacy_bounds": {j: tuple(rows["bounds"][j]) for j in np.flatnonzero(~nominal)},
        "random_state": int(rows["seed"]),
        "n_jobs": 1,
    }
    machine = DPExplainableBoostingClassifier
    if "target" in rows:
        machine = DPExplainableBoostingRegressor
        known |= dict(zip(("privacy_target_min", "privacy_target_max"), rows["target"].tolist(), strict=True))
    X, X_test = (mixed(rows[name], nominal) for name in ("X", "X_test"))
    predicted = []
    for epsilon in rows["epsilons"]:
        for setting in json.loads(str(rows["settings"])):
            model = machine(epsilon=float(epsilon), **known, **setting).fit(X, rows["y"])
            predicted.append(model.predict(X_test) if "target" in rows else model.predict_proba(X_test)[:, 1])
    shape = (len(rows["epsilons"]), -1, len(X_test))
    np.savez(path.removesuffix(".npz") + ".out.npz", predicted=np.reshape(predicted, shape))


def mixed(rows: np.ndarray, nominal: np.ndarray) -> np.ndarray:
    """Numbers, and categories as texts, which the machine asks for."""
    found = rows.astype(object)
    for j in np.flatnonzero(nominal):
        found[:, j] = [f"{value:.0f}" for value in rows[:, j]]
    return found


if __name__ == "__main__":
    main(sys.argv[1])
