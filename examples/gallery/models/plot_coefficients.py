"""
Coefficients with confidence intervals
======================================

How much does a year of school add to the wage, and how sure is that? A regression answers it with an
interval. Here the rows are private, and the intervals count the noise.
"""

# %%
# A regression
# ------------
#
# The table is made up: wages of 20,000 people. A year of school adds 0.8, a year of work 0.1, and the height
# nothing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmixdp.inference import private_inference

rng = np.random.default_rng(0)
n = 20_000
people = pd.DataFrame(
    {"school": rng.integers(8, 20, n), "work": rng.uniform(0, 40, n), "height": rng.normal(170, 9, n)}
)
wage = 5 + 0.8 * people["school"] + 0.1 * people["work"] + rng.normal(0, 4, n)

result = private_inference(people, wage, family="gaussian", epsilon=1.0, delta=1e-6)
print(result)

# %%
# The last column says which part of the width of an interval is due to privacy.
#
# Odds
# ----
#
# The same for the odds of a wage above 20. Its report says what is guaranteed.

odds = private_inference(people, wage > 20, classes=[False, True], epsilon=1.0, delta=1e-6)
print(odds.odds_ratios())
print(odds.privacy_)

# %%
# Intervals at three budgets
# --------------------------
#
# A larger budget narrows the intervals, down to those of a regression without privacy.

figure, all_axes = plt.subplots(1, 3, figsize=(11, 3), sharex=True, layout="constrained")
for epsilon, ax in zip((0.3, 1.0, 10.0), all_axes, strict=True):
    found = private_inference(people, wage, family="gaussian", epsilon=epsilon, delta=1e-6)
    found.plot(ax=ax)
    ax.set_title(f"epsilon {epsilon:g}")
