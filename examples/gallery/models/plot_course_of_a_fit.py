"""
The course of a fit
===================

A callback sees released and public facts of each step. This example records them, and asks whether the clip
suits the gradients.
"""

# %%
# Two clips
# ---------
#
# A clip bounds the gradient of each row. AdaMix takes a quantile of the public gradients' lengths in every
# step. Noisy gradient descent keeps a constant, here one that is far too large.

import numpy as np
from sklearn.datasets import load_digits

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.inspection import GradientNormsDisplay, StepHistory

X, y = load_digits(return_X_y=True)
public, private, test = np.split(np.random.default_rng(0).permutation(len(y)), [100, 1397])
X_pub, y_pub = X[public], y[public]

for algorithm in (AdaMix(clip_floor=0.01), NoisyGD(clip=3.0)):
    history = StepHistory()
    clf = MixedDPLogisticRegression(algorithm, epsilon=1.0, delta=1e-5).set_callbacks(history)
    clf.fit(X[private], y[private], X_pub=X_pub, y_pub=y_pub)
    display = GradientNormsDisplay.from_estimator(clf)
    display.figure_.suptitle(f"{type(algorithm).__name__}: test accuracy {clf.score(X[test], y[test]):.2f}")

# %%
# The noise is proportional to the clip. AdaMix's clip lies at the upper end of the band: it shortens one
# row in ten. The constant clip lies far above the band. It shortens nothing, and asks for about six times
# as much noise.
