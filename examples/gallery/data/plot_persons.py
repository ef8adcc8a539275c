"""
Several rows of one person
==========================

A guarantee for each row does not protect a person with ten rows. ``groups`` protects all rows of a person.
It needs less noise than to keep one row of each person, or to protect rows with a smaller budget.
"""

# %%
# Persons with more and more rows
# -------------------------------
#
# The same 1,347 images belong to fewer and fewer persons. Fifty more are public.

import numpy as np
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
X_test, y_test, X_pub, y_pub, X, y = X[:400], y[:400], X[400:450], y[400:450], X[450:], y[450:]

# %%
# Three ways to protect them
# --------------------------
#
# Each of the three has the same guarantee for all rows of one person: ``groups``, one row of each person, and
# *group privacy*. The latter protects rows with a budget that is m times smaller in Gaussian terms. Where
# noise hides the private rows, a warning says that the public rows suffice. It is expected here, so it is
# turned off.

import warnings

from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import epsilon_of, mu_of_budget

EPSILON, DELTA, SIZES = 1.0, 1e-5, (1, 2, 5, 10, 20)


def accuracy(rows=slice(None), epsilon=EPSILON, groups=None):
    scores = []
    for _ in range(3):
        clf = MixedDPLogisticRegression(epsilon=epsilon, delta=DELTA)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            clf.fit(X[rows], y[rows], X_pub, y_pub, groups=groups)
        scores.append(clf.score(X_test, y_test))
    return 100 * np.mean(scores)


found = {"groups": [], "one row of each": [], "group privacy": []}
for m in SIZES:
    found["groups"].append(accuracy(groups=np.arange(len(y)) // m))
    found["one row of each"].append(accuracy(rows=slice(None, None, m)))
    weaker = epsilon_of(m / mu_of_budget(EPSILON, DELTA), 1, delta=DELTA)
    found["group privacy"].append(accuracy(epsilon=weaker))
for name, values in found.items():
    print(f"{name:16}", " ".join(f"{value:5.1f}" for value in values))

# %%
# The picture
# -----------

import matplotlib.pyplot as plt

fig, ax = plt.subplots(layout="constrained")
for name, values in found.items():
    ax.plot(range(len(SIZES)), values, marker="o", label=name)
ax.set(
    xticks=range(len(SIZES)),
    xticklabels=SIZES,
    xlabel="rows of each person",
    ylabel="test accuracy, %",
    title=f"Digits, epsilon {EPSILON:g} for each person",
)
ax.legend()
plt.show()

# %%
# The report says what is protected.

clf = MixedDPLogisticRegression(epsilon=EPSILON, delta=DELTA)
print(clf.fit(X, y, X_pub, y_pub, groups=np.arange(len(y)) // 10).privacy_)
