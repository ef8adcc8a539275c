"""
3. Images, with public rows
===========================

1,797 real images of digits that people wrote. 150 writers agreed to publish theirs, and all others are
private. What are public rows worth, and how sure is the model of what it says?

The pixels serve as features. For larger images, take those of a network (see *Images and texts* in the
guide).
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import ConfusionDisplay, EvaluationDisplay, model_card
from skmixdp.model_selection import private_evaluation
from skmixdp.privacy import PrivacyLedger

X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
X_pub, y_pub, X_check, y_check = X[:50], y[:50], X[50:150], y[50:150]  # public
X_fit, y_fit, X_eval, y_eval = X[150:1200], y[150:1200], X[1200:], y[1200:]  # private

figure, panels = plt.subplots(1, 10, figsize=(10, 1.4), layout="constrained")
for panel, image, label in zip(panels, X_pub, y_pub, strict=False):
    panel.imshow(image.reshape(8, 8), cmap="gray_r")
    panel.set(title=label, xticks=[], yticks=[])
plt.show()

# %%
# With public rows, and without
# -----------------------------
# Each fit is charged. To compare them on private rows would be a release too. So 100 public rows that no
# model has seen compare them, at no cost.

writers = PrivacyLedger("ledger.sqlite").add_dataset("writers", epsilon=4.0, delta=1e-4)
head = MixedDPLogisticRegression(epsilon=0.5, delta=1e-4, classes=range(10), ledger=writers)
alone = head.fit(X_fit, y_fit)
model = MixedDPLogisticRegression(epsilon=0.5, delta=1e-4, ledger=writers)
model.fit(X_fit, y_fit, X_pub=X_pub, y_pub=y_pub)
print(
    f"without public rows: {alone.score(X_check, y_check):.2f}, with 50: {model.score(X_check, y_check):.2f}"
)
model.privacy_

# %%
# How often is it right, and does it know?
# ----------------------------------------
# For ten classes, the layout "top" asks whether the predicted class is right. A reliable model is right in
# 9 of 10 cases where it says 0.9.

evaluation = private_evaluation(model, X_eval, y_eval, epsilon=1.0, delta=1e-4, ledger=writers)
evaluation

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
EvaluationDisplay.from_evaluation(evaluation, kind="calibration", ax=left)
ConfusionDisplay.from_estimator(model, X_eval, y_eval, noise_multiplier=4.0, ax=right)
plt.show()

# %%
# A threshold: when to ask a person
# ---------------------------------
# From this probability on, at least 85% of the answers should be right. The others go to a person.

threshold = evaluation.threshold("precision", 0.85)
at = evaluation.at(threshold)
print(f"trust from {threshold:.2f} on: {at['selection rate']} of the images, {at['precision']} right")

# %%
# The released model
# ------------------

model.save("digits.safetensors")
card = model_card(
    model,
    title="Handwritten digits",
    accounted_scores={"accuracy": (evaluation.share().value, "noisy histogram, charged")},
)
print(card.to_markdown()[:700])

# %%
writers
