"""
Rare classes
============

Noise is the same for all classes, but a rare class has few rows to stand out from it. A private model
forgets rare classes first. Accuracy does not show it; the recall of each class does.
"""

# %%
# Data
# ----
#
# Four classes, with 70%, 20%, 7% and 3% of the rows. There are no public rows, so the classes are declared.

import numpy as np
from sklearn.datasets import make_classification

X, y = make_classification(
    12_000,
    20,
    n_informative=10,
    n_classes=4,
    n_clusters_per_class=1,
    weights=[0.7, 0.2, 0.07, 0.03],
    flip_y=0,
    random_state=0,
)
X, y, X_test, y_test = X[:8000], y[:8000], X[8000:], y[8000:]

# %%
# Three ways to treat rare classes
# --------------------------------
#
# The default counts the classes with noise and moves the scores by these counts, within one point of
# accuracy. ``class_weight="balanced"`` weights the rows by the noisy counts before it clips them.
# ``logit_adjustment=0`` does nothing. The report lists what the counts cost.

from sklearn.metrics import balanced_accuracy_score, recall_score

from skmixdp import MixedDPLogisticRegression

settings = {"no correction": {"logit_adjustment": 0}, "default": {}, "balanced": {"class_weight": "balanced"}}
recalls = {}
for name, parameters in settings.items():
    recalls[name] = []
    scores = []
    for _ in range(5):
        clf = MixedDPLogisticRegression(epsilon=1.0, delta=1e-5, classes=range(4), **parameters).fit(X, y)
        predicted = clf.predict(X_test)
        recalls[name].append(recall_score(y_test, predicted, average=None))
        scores.append((np.mean(predicted == y_test), balanced_accuracy_score(y_test, predicted)))
    accuracy, balanced = np.mean(scores, axis=0)
    print(f"{name:14} accuracy {accuracy:.3f}, balanced accuracy {balanced:.3f}")
print({name: f"{share:.1%}" for name, share in clf.privacy_.shares})

# %%
# Recall of each class
# --------------------

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
colors, hatches = ("#999999", "#56b4e9", "#e69f00"), ("", "//", "..")
for i, (name, found) in enumerate(recalls.items()):
    places = np.arange(4) + 0.27 * (i - 1)
    bars = {"color": colors[i], "hatch": hatches[i], "edgecolor": "black", "linewidth": 0.5}
    ax.bar(places, np.mean(found, axis=0), 0.25, yerr=np.std(found, axis=0), capsize=2, label=name, **bars)
ax.set_xticks(range(4), [f"class {k}\n{share:.0%} of rows" for k, share in enumerate((0.7, 0.2, 0.07, 0.03))])
ax.set(ylabel="recall on test rows", ylim=(0, 1.05))
ax.legend()

# %%
# Without a correction, the rarest class is found least often. Weights find it more often, and give up some
# recall of the most frequent class.
