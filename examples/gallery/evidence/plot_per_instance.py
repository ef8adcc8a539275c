"""
The privacy loss of each row
============================

The epsilon of a fit holds for every row of every data set. Most rows lose less. This example records what
each row of one data set lost in one fit.
"""

# %%
# Record
# ------
#
# Digits serve as private rows here, so their losses may be shown. Those of real private rows are themselves
# private.

import numpy as np
from sklearn.datasets import load_digits

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD

X, y = load_digits(return_X_y=True)
public, private = np.split(np.random.default_rng(0).permutation(len(y)), [100])

options = {"epsilon": 3.0, "delta": 1e-5, "record_per_instance": True}
alone = MixedDPLogisticRegression(NoisyGD(), classes=range(10), **options).fit(X, y)
adamix = MixedDPLogisticRegression(AdaMix(clip_floor=0.01), **options)
adamix.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
print(adamix.per_instance_)

# %%
# The curve
# ---------
#
# Rows are sorted by their epsilon. The dotted line is the guarantee, which no row exceeds.

from skmixdp.inspection import PerInstanceDisplay

display = PerInstanceDisplay.from_estimators({"fully private": alone, "AdaMix": adamix})
display.ax_.set_title("Digits: what each row lost", loc="left", pad=24)

# %%
# With AdaMix, half of the rows lose less than a third of the guarantee. They fit the public start, so their
# gradients are short from the first step on. Fully private training starts at zero, where all gradients are
# long.
#
# Which rows lose most? Those that the model finds hard: their gradients stay long.

from skmixdp.audit import per_instance_epsilon

epsilons = per_instance_epsilon(adamix)
right = adamix.predict(X[private]) == y[private]
print(f"median epsilon {np.median(epsilons[right]):.2f} of rows that the model classifies correctly")
print(f"median epsilon {np.median(epsilons[~right]):.2f} of rows that it gets wrong")
