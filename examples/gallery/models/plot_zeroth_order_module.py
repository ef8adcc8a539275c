"""
A torch module, trained by losses alone
=======================================

Zeroth-order training never asks private rows for a gradient. It only compares their losses at a few points.
This suits models that cannot be differentiated, and models with few parameters to train, as in this
example.
"""

# %%
# A network for another camera
# ----------------------------
#
# A network was trained on public images. The private images come from another camera, which washes them
# out. Two parameters in front of the network, a gain and an offset, could correct that.

import numpy as np
import torch
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
public, private, test = np.split(np.random.default_rng(0).permutation(len(y)), [400, 1397])
X_camera = np.float32(0.5) * X + np.float32(0.5)


class Camera(torch.nn.Module):
    """Corrects the brightness of images."""

    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(1))
        self.offset = torch.nn.Parameter(torch.zeros(1))

    def forward(self, images):
        return self.gain * images + self.offset


torch.manual_seed(0)
network = torch.nn.Sequential(Camera(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.Adam(network[1:].parameters(), lr=0.01)
for _ in range(200):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(torch.tensor(X[public])), torch.tensor(y[public])).backward()
    optimizer.step()


def accuracy(model, rows):
    with torch.no_grad():
        return (model(torch.tensor(rows)).argmax(1).numpy() == y[test]).mean()


print(f"public camera:  test accuracy {accuracy(network, X[test]):.2f}")
print(f"private camera: test accuracy {accuracy(network, X_camera[test]):.2f}")

# %%
# Two parameters from private losses
# ----------------------------------
#
# ``trainable=["0"]`` trains the first submodule alone. ``init="module"`` starts from the network as it is.
# In each of 50 steps, every private row gives one clipped number: how its loss changes along a random
# direction.

from skmixdp import ZerothOrderDPModuleClassifier

clf = ZerothOrderDPModuleClassifier(
    network,
    "dpzero",
    init="module",
    trainable=["0"],
    classes=range(10),
    epsilon=0.3,
    delta=1e-5,
    n_steps=50,
    learning_rate=0.3,
)
clf.fit(X_camera[private], y[private])
found = clf.module_[0]
print(f"gain {found.gain.item():.2f}, offset {found.offset.item():.2f}; exact would be 2 and -1")
print(f"private camera, after the fit: test accuracy {clf.score(X_camera[test], y[test]):.2f}")

# %%
# Before and after
# ----------------

import matplotlib.pyplot as plt

with torch.no_grad():
    corrected = found(torch.tensor(X_camera[test[:4]])).numpy()
kinds = {"public camera": X[test[:4]], "private camera": X_camera[test[:4]], "corrected": corrected}
figure, axes = plt.subplots(3, 4, figsize=(6, 4.8), layout="constrained")
for line, (name, images) in zip(axes, kinds.items(), strict=True):
    for ax, image in zip(line, images, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)

# %%
# A budget of epsilon 0.3 is enough for two parameters. A direction in two dimensions sees most of the
# gradient. For thousands of parameters it sees little, and zeroth-order training then moves them slowly.
