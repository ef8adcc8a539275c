"""
Curves instead of lines
=======================

Wages rise with age until about 50, and fall after that. A straight line cannot say so. An additive model has
a curve for each number of a table, and can be read.
"""

# %%
# A table like a census
# ---------------------
#
# The table is made up: 30,000 people, four numbers, a date and two categories. Whether somebody earns much
# depends on age and hours by curves, and on a gain above 3,000. Most people have no gain, and one sector in
# ten is missing. The postcode says nothing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, private_pipeline
from skmixdp.inspection import EffectsDisplay
from skmixdp.preprocessing import TableEncoder

rng = np.random.default_rng(0)
n = 30_000
people = pd.DataFrame(
    {
        "age": rng.integers(17, 85, n),
        "hours": np.clip(rng.normal(40, 11, n).round(), 1, 90),
        "gain": np.where(rng.random(n) < 0.6, 0, rng.lognormal(8, 1, n)).round(),
        "postcode": rng.integers(10_000, 99_999, n),
        "hired": pd.Timestamp("2005-01-01") + pd.to_timedelta(rng.integers(0, 7_000, n), "D"),
        "sector": rng.choice(["private", "public", "own"], n, p=[0.7, 0.2, 0.1]),
        "degree": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
    }
)
logit = (
    -1.5
    + 2.5 * np.exp(-(((people["age"] - 50) / 15) ** 2))
    + np.minimum(people["hours"] - 40, 10) / 8
    + 2 * (people["gain"] > 3_000)
    + 1.2 * (people["degree"] == "yes")
    - 1
    + (people["hired"].dt.year < 2010)
)
people.loc[rng.random(n) < 0.1, "sector"] = None
rich = rng.random(n) < 1 / (1 + np.exp(-logit))
X, y, X_test, y_test = people[:25_000], rich[:25_000], people[25_000:], rich[25_000:]

# %%
# Two models
# ----------
#
# The encoder knows nothing of private rows: the columns are declared. Both models have the same budget.

kinds = dict.fromkeys(["age", "hours", "gain", "postcode"], "number")
kinds |= {"sector": ["private", "public", "own"], "degree": ["no", "yes"], "hired": "date"}
scores = {}
for head in (MixedDPLogisticRegression, AdditiveDPClassifier):
    encoder = TableEncoder(kinds, indicators=["sector"])
    model = private_pipeline(encoder, head(epsilon=1.0, delta=1e-6, classes=[False, True]))
    scores[head.__name__] = model.fit(X, y).score(X_test, y_test)
print({name: f"{score:.3f}" for name, score in scores.items()})

# %%
# The curves
# ----------
#
# Each column of the table has a panel, most important first. Bands and lines on bars are 95% intervals of the
# noise of training. The curve of the postcode is noise, and its band says so. The budget for the knots, from
# noisy histograms, is a part of epsilon.

print(model.privacy_.shares)
display = EffectsDisplay.from_estimator(model)
display.figure_.suptitle("What each column adds to the logit of a high wage, at epsilon 1")

# %%
# One person
# ----------
#
# What each column adds for a row, most first. These people are made up. For real people whose rows are
# private, the parts of a prediction would be a release that no budget covers.

parts = model.explain(X_test[:1]).iloc[0]
parts = parts.reindex(parts.abs().sort_values().index)
print(X_test[:1].T)

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(parts.index, parts, color=["#D55E00" if part < 0 else "#0072B2" for part in parts])
ax.axvline(0, color="0.6", linewidth=0.8)
ax.set_xlabel("added to the logit of a high wage")
