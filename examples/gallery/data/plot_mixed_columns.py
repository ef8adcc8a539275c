"""
A table with mixed columns
==========================

Real tables mix numbers, categories and dates, and have gaps. Scalers and encoders learn from all rows that
they see, so they must not see private ones. ``TableEncoder`` learns from public rows. Afterwards the released
model may be plotted at will.
"""

# %%
# The table
# ---------
#
# 3,000 people, of whom 200 agreed to be public. The label says who subscribed.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 3000
table = pd.DataFrame(
    {
        "age": rng.uniform(18, 80, n).round(1),
        "income": rng.lognormal(10, 0.5, n).round(),
        "job": rng.choice(["none", "part", "full"], n, p=[0.2, 0.3, 0.5]),
        "joined": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D"),
    }
)
score = 0.08 * (table["age"] - 45) + table["job"].map({"none": -2.0, "part": 0.0, "full": 1.0})
y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
table.loc[rng.random(n) < 0.1, "income"] = np.nan
X_pub, y_pub, X, y_priv = table[:200], y[:200], table[200:], y[200:]

# %%
# Two lines
# ---------
#
# ``private_pipeline`` passes the public rows to the encoder and, encoded, to the head. Of the private table,
# the encoder reads the names of the columns and nothing else.

from skmixdp import MixedDPLogisticRegression, private_pipeline
from skmixdp.preprocessing import TableEncoder

model = private_pipeline(TableEncoder(), MixedDPLogisticRegression(epsilon=1.0, delta=1e-5))
model.fit(X, y_priv, X_pub=X_pub, y_pub=y_pub)
for name, column in model[0].columns_.items():
    learned = f"centre {column.center:.0f}, spread {column.scale:.0f}, missing values: {column.indicator}"
    print(f"{name:8} {column.kind:10} {', '.join(column.categories) or learned}")

# %%
# The report lists what counts as public.

print(model.privacy_)

# %%
# Look at the model
# -----------------
#
# Predictions at points of your choice are post-processing, so they cost nothing more.

import matplotlib.pyplot as plt

ages = np.arange(18, 80)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (job, effect), style in zip({"none": -2, "part": 0, "full": 1}.items(), ("-", "--", ":"), strict=True):
    people = pd.DataFrame({"age": ages, "income": np.exp(10), "job": job, "joined": "2019-01-01"})
    (line,) = ax.plot(ages, model.predict_proba(people)[:, 1], style, label=f"{job}: private model")
    truth = 1 / (1 + np.exp(-(0.08 * (ages - 45) + effect)))
    ax.plot(ages, truth, color=line.get_color(), alpha=0.35, linewidth=4, label=f"{job}: truth")
ax.set(xlabel="age", ylabel="probability of a subscription", ylim=(0, 1))
ax.set_title("What the model learned, for each job", loc="left")
ax.legend(ncols=3, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15))

# %%
# The model found both effects: older people subscribe more often, and so do people with more work. An extreme
# age stays extreme, since numbers keep their length up to a bound.
