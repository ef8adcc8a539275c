"""
From images to a private head
=============================

A linear model is only as good as its rows. This example classifies small images twice with the same budget:
from their pixels, and from features of a fixed network. The network is a scattering transform, two layers
of wavelets. Nothing in it was trained, so it has never seen a private image.
"""

# %%
# Images to rows
# --------------
#
# ``transform`` treats each image by itself. So one private image is one private row, and the guarantee of
# the head covers it.

import numpy as np
from sklearn.datasets import load_digits

from skmixdp.features import ScatteringFeatures

digits = load_digits()
images, y = (digits.images * 15).astype(np.uint8), digits.target
features = ScatteringFeatures(J=2, image_size=16, batch_size=600, device="cpu")
rows = {"pixels": digits.data, "scattering features": features.transform(images)}
print({name: X.shape for name, X in rows.items()})

# %%
# A head for each kind of rows
# ----------------------------
#
# There are 50 public and 1,347 private images. The budget is small: epsilon is 0.3. The 400 test images
# take part in no fit. They count as public here, so their scores may be shown.

import matplotlib.pyplot as plt

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import ConfusionDisplay

public, private, test = np.split(np.random.default_rng(0).permutation(len(y)), [50, 1397])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained", sharex=True)
for ax, (name, X) in zip(axes, rows.items(), strict=True):
    head = MixedDPLogisticRegression(epsilon=0.3, delta=1e-5)
    head.fit(X[private], y[private], X_pub=X[public], y_pub=y[public])
    ConfusionDisplay.from_estimator(head, X[test], y[test], ax=ax)
    ax.set_title(f"{name}: {head.score(X[test], y[test]):.1%} correct", loc="left", pad=24)

# %%
# With these features, fewer digits are confused at the same budget. Other networks work in the same way, with
# :class:`~skmixdp.features.TimmFeatures` or :class:`~skmixdp.features.OpenClipFeatures` in the first step.
