"""
Public rows of another kind
===========================

Public rows often differ from the private ones: another camera, careless labels, other people. Such rows do
little harm. Rows whose model is of no use are left out, and the fit says so.
"""

# %%
# Five kinds of public rows
# -------------------------
#
# There are 50 public and 1,347 private digits. The public ones are changed in four ways.

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skmixdp import MixedDPLogisticRegression

images, y = load_digits(return_X_y=True)
public, private, test = np.split(np.random.default_rng(0).permutation(len(y)), [50, 1397])
X_pub, y_pub = images[public].reshape(-1, 8, 8), y[public]

rng = np.random.default_rng(1)
careless = np.where(rng.random(50) < 0.3, rng.integers(10, size=50), y_pub)
kinds = {
    "as the private rows": (X_pub, y_pub),
    "30% of the labels at random": (X_pub, careless),
    "moved by a pixel": (np.roll(X_pub, 1, axis=2), y_pub),
    "rotated by 90 degrees": (np.rot90(X_pub, axes=(1, 2)), y_pub),
    "inverted": (16 - X_pub, y_pub),
}

# %%
# Fits
# ----
#
# ``privacy_.n_public`` is 0 where public rows were left out. A warning says the same; it is expected here,
# so it is turned off.

found = {}
for name, (rows, labels) in kinds.items():
    rows = rows.reshape(50, 64)
    alone = LogisticRegression(max_iter=1000).fit(rows, labels).score(images[test], y[test])
    clf = MixedDPLogisticRegression(epsilon=1.0, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf.fit(images[private], y[private], X_pub=rows, y_pub=labels)
    used = "used" if clf.privacy_.n_public else "left out"
    found[f"{name}\n({used})"] = (alone, clf.score(images[test], y[test]))
    print(f"{name:28} {used:8}  private model on public rows: {clf.score(rows, labels):.2f}")

# %%
# Accuracy on test rows
# ---------------------

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.arange(len(found))
for i, (label, color, hatch) in enumerate(
    (("public rows alone", "#999999", "//"), ("private fit", "#0072b2", ""))
):
    heights = [scores[i] for scores in found.values()]
    ax.barh(
        places + 0.4 * i,
        heights,
        0.38,
        label=label,
        color=color,
        hatch=hatch,
        edgecolor="black",
        linewidth=0.5,
    )
ax.set_yticks(places + 0.2, found)
ax.invert_yaxis()
ax.set(xlabel="test accuracy", title="50 public rows of five kinds, epsilon 1")
figure.legend(loc="outside lower center", ncols=2)

# %%
# The private fits differ by little, though the public rows alone are sometimes worse than chance. To notice
# a shift, score the private model on the public rows, which spends no budget. A score well below 95% is a
# warning.
