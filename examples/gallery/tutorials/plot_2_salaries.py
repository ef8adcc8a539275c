"""
2. A regression: salaries with dates and text
=============================================

A union collects salaries, with the day of hire and the title of the job as text. It publishes a model of
salaries, but not what anybody earns. 200 members agreed to have their rows public.

The rows are made up, since real ones of this kind are not public.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmixdp import AdditiveDPRegressor, private_pipeline
from skmixdp.inspection import EffectsDisplay, EvaluationDisplay, model_card
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger

rng = np.random.default_rng(0)
n = 12_200
levels, jobs = ["junior", "senior", "lead"], ["nurse", "engineer", "teacher", "driver", "analyst"]
level, job = rng.integers(0, 3, n), rng.integers(0, 5, n)
years = rng.gamma(2.0, 5.0, n).clip(0, 40)
table = pd.DataFrame(
    {
        "title": [f"{levels[i]} {jobs[j]}" for i, j in zip(level, job, strict=True)],
        "hired": (pd.Timestamp("2025-01-01") - pd.to_timedelta(years * 365.25, unit="D")).strftime(
            "%Y-%m-%d"
        ),
        "hours": rng.choice([20, 30, 35, 40], n, p=[0.2, 0.2, 0.2, 0.4]),
    }
)
base = 28_000 + 9_000 * level + np.array([4_000, 16_000, 6_000, 0, 12_000])[job] + 6_000 * np.sqrt(years)
table["salary"] = (base * table["hours"] / 40 * rng.lognormal(0, 0.1, n)).round(-2)

# %%
# Public rows decide the kinds
# ----------------------------
# ``TableEncoder`` sees that ``hired`` holds dates and ``hours`` numbers. With 200 public rows it has seen
# all titles, so it makes categories of them. The private rows decide nothing.

X, y = table.drop(columns="salary"), table["salary"]
X_pub, y_pub, X_fit, y_fit = X[:200], y[:200], X[200:9000], y[200:9000]
X_eval, y_eval = X[9000:], y[9000:]
encoder = TableEncoder().fit(X_fit, X_pub=X_pub)
encoder.columns_

# %%
# The fit
# -------

members = PrivacyLedger("ledger.sqlite").add_dataset("members", epsilon=2.0, delta=1e-5)
head = AdditiveDPRegressor(epsilon=1.0, delta=1e-5, ledger=members)
model = private_pipeline(TableEncoder(), head).fit(X_fit, y_fit, X_pub=X_pub, y_pub=y_pub)
model.privacy_

# %%
# What it learned
# ---------------

EffectsDisplay.from_estimator(model, columns=["hours", "hired"])
plt.show()

# %%
# How wrong is it?
# ----------------
# Bounds of salaries come from knowledge, not from the rows. Errors beyond 40,000 count as 40,000.

errors = private_evaluation(
    model, X_eval, y_eval, epsilon=1.0, target_bounds=(0, 150_000), residual_bound=40_000, ledger=members
)
errors

# %%
print(f"90% of the salaries are within {errors.half_width(0.9):,.0f} of the prediction")
EvaluationDisplay.from_evaluation(errors)
plt.show()

# %%
# The released model
# ------------------

model.save("salaries.safetensors")
r2 = errors.r2_score().value
card = model_card(model, title="Salaries", accounted_scores={"R2": (r2, "noisy histogram, charged")})
print(card.to_markdown()[:600])

# %%
members
