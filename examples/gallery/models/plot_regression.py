"""
Private regression
==================

``MixedDPRidge`` predicts numbers. Its targets are centred and scaled by the public targets, and clipping
bounds what one row can do. This example asks at which budget private rows are worth having.
"""

# %%
# Data
# ----
#
# Friedman's function has products and squares, so the features are polynomials of its ten inputs.
# ``PolynomialFeatures`` learns nothing from rows.

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import PolynomialFeatures

inputs, y = make_friedman1(6000, noise=1.0, random_state=0)
X = PolynomialFeatures(2, include_bias=False).fit_transform(inputs)
public, private, test = np.split(np.arange(len(y)), [100, 5000])
print(f"{X.shape[1]} features, {len(public)} public and {len(private)} private rows")

# %%
# Fits
# ----

import pandas as pd
from sklearn.linear_model import RidgeCV

from skmixdp import MixedDPRidge

penalties = np.logspace(-3, 3, 13)
results = [
    {
        "method": "public rows alone",
        "R2": RidgeCV(penalties).fit(X[public], y[public]).score(X[test], y[test]),
    },
    {"method": "non-private", "R2": RidgeCV(penalties).fit(X[:5000], y[:5000]).score(X[test], y[test])},
]
for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
    for draw in range(3):
        model = MixedDPRidge(epsilon=epsilon, delta=1e-5)
        model.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
        r2 = model.score(X[test], y[test])
        results.append({"method": "MixedDPRidge", "epsilon": epsilon, "draw": draw, "R2": r2})

# %%
# Result
# ------

from skmixdp.inspection import PrivacyUtilityDisplay

table = pd.DataFrame(results)
display = PrivacyUtilityDisplay.from_results(table, score="R2", percent=False, delta=1e-5)
display.ax_.set_title("Friedman's function: 100 public and 4,900 private rows", loc="left")

# %%
# Already at epsilon 0.1, private rows are worth having: the model is a little better than ridge regression on
# the 100 public rows alone. From epsilon 3 on it comes close to ridge regression without privacy.

print(table.groupby(["method", "epsilon"], dropna=False)["R2"].mean().round(3))
