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
# nothing. Managers earn 3 more than others. The encoder is told what the columns are.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmixdp.inference import private_inference
from skmixdp.preprocessing import TableEncoder

rng = np.random.default_rng(0)
n = 20_000
people = pd.DataFrame(
    {
        "school": rng.integers(8, 20, n),
        "work": rng.uniform(0, 40, n),
        "height": rng.normal(170, 9, n),
        "city": rng.choice(["Bonn", "Rome", "Ulm"], n),
        "manager": rng.random(n) < 0.1,
    }
)
wage = 5 + 0.8 * people["school"] + 0.1 * people["work"] + 3 * people["manager"] + rng.normal(0, 4, n)

kinds = {"school": (8, 20), "work": (0, 40), "height": (120, 220)}
encoder = TableEncoder(kinds | {"city": ["Bonn", "Rome", "Ulm"], "manager": "boolean"}).fit(people[:0])
options = {"encoder": encoder, "delta": 1e-6}
result = private_inference(people, wage, family="gaussian", epsilon=1.0, **options)
print(result)

# %%
# The last column says which part of the width of an interval is due to privacy. A picture has all slopes:
# numbers per spread of their column, categories against the first one, and managers against others.

result.plot()
plt.show()

# %%
# Odds
# ----
#
# The same for the odds of a wage above 20. Its report says what is guaranteed.

odds = private_inference(people, wage > 20, classes=[False, True], epsilon=1.0, **options)
print(odds.odds_ratios())
print(odds.privacy_)

# %%
# Intervals at four budgets
# -------------------------
#
# A larger budget narrows the intervals, down to those of a regression without privacy.

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
budgets = (0.3, 1.0, 3.0, 10.0)
for place, epsilon in enumerate(budgets):
    found = private_inference(people, wage, family="gaussian", epsilon=epsilon, **options)
    low, high = found.conf_int().loc["school"]
    ax.plot([low, high], [place, place], linewidth=3, color="#0072B2")
    ax.plot(found.params["school"], place, "o", color="#0072B2")
ax.axvline(0.8, color="0.5", linestyle=":", label="truth")
ax.set_yticks(range(len(budgets)), [f"epsilon {epsilon:g}" for epsilon in budgets])
ax.set_xlabel("wage per year of school, with 95% intervals")
ax.legend()
