"""
A search within a budget
========================

A grid search fits many models to the same private rows and scores each of them. All of this is one budget
here: ``PrivateSearchCV`` divides it among the fits and the noisy scores.
"""

# %%
# The search
# ----------
#
# Five candidates: AdaMix and noisy gradient descent, each with rows scaled to unit length or left as they
# are, and the default.

import numpy as np
from sklearn.datasets import load_digits

from skmixdp import MixedDPLogisticRegression, RowMapping
from skmixdp.model_selection import PrivateSearchCV

X, y = load_digits(return_X_y=True)
public, private, test = np.split(np.random.default_rng(0).permutation(len(y)), [50, 1397])

grid = [
    {"algorithm": ["adamix", "noisy-gd"], "rows": [RowMapping(norm="unit"), RowMapping(norm=None)]},
    {"algorithm": ["auto"]},
]
search = PrivateSearchCV(MixedDPLogisticRegression(), grid, epsilon=3.0, delta=1e-5, strategy="grid")
search.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
print(search.best_params_)
print(f"epsilon {search.privacy_.epsilon:.2f} in all, {search.privacy_.fit_epsilon:.2f} for each fit")

# %%
# What the search saw
# -------------------
#
# A score is a noisy count of the private rows that a candidate classifies correctly. The bars are 95%
# intervals of that noise. A difference much shorter than a bar may be noise alone.

import matplotlib.pyplot as plt

results = search.cv_results_
names = [", ".join(f"{value}" for value in params.values()) for params in results["params"]]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
half = 1.96 * search.privacy_.score_noise
ax.errorbar(
    results["mean_test_score"], names, xerr=half, fmt="o", color="#0072b2", capsize=3, label="noisy score"
)
ax.plot(
    search.best_score_, names[search.best_index_], "s", ms=13, mfc="none", color="#d55e00", label="chosen"
)
ax.set(xlabel="share of private rows classified correctly", title="Five candidates, one budget")
ax.invert_yaxis()
ax.legend()

# %%
# Was it worth it?
# ----------------
#
# The search divided epsilon 3 among five fits and five scores. The default without a search spends all of
# it on one fit.

alone = MixedDPLogisticRegression(epsilon=3.0, delta=1e-5)
alone.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
for name, model in (("the choice of the search", search), ("the default alone", alone)):
    print(f"{name:24} test accuracy {model.score(X[test], y[test]):.3f}")

# %%
# The default alone had the whole budget for one fit, and is more accurate than what the search chose. The
# search did reject a bad candidate, AdaMix on rows of any length. The others are too close for their noisy
# scores to tell them apart, and each of them took a part of the budget. So search only where candidates may
# differ by much.
