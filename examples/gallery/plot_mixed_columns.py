"""
A table with mixed columns
==========================

Real tables mix numbers and categories. Scalers and encoders learn from all rows that they see, so they must
not see private ones. ``PublicOnly`` fits them to public rows instead. Afterwards the released model may be
plotted at will.
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
        "age": rng.integers(18, 80, n),
        "income": rng.lognormal(10, 0.5, n).round(),
        "job": rng.choice(["none", "part", "full"], n, p=[0.2, 0.3, 0.5]),
    }
)
score = 0.08 * (table["age"] - 45) + table["job"].map({"none": -2.0, "part": 0.0, "full": 1.0})
y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
X_pub, y_pub, X, y_priv = table[:200], y[:200], table[200:], y[200:]

# %%
# A pipeline without leaks
# ------------------------
#
# ``PublicOnly`` wraps the whole ``ColumnTransformer``. ``check_pipeline`` confirms that no step learns from
# private rows. Without the wrapper, it names the scaler. The encoder has declared categories, so it learns
# nothing. The head would also scale the columns by itself.

import sklearn
from sklearn.compose import make_column_transformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skmixdp import MixedDPLogisticRegression
from skmixdp.preprocessing import PublicOnly, check_pipeline

sklearn.set_config(enable_metadata_routing=True)
columns = make_column_transformer(
    (StandardScaler(), ["age", "income"]),
    (OneHotEncoder(categories=[["none", "part", "full"]], sparse_output=False), ["job"]),
)
head = MixedDPLogisticRegression(epsilon=1.0, delta=1e-5)
leaking = Pipeline([("columns", columns), ("head", head)], transform_input=["X_pub"])
sound = Pipeline([("columns", PublicOnly(columns)), ("head", head)], transform_input=["X_pub"])
print(check_pipeline(leaking))
print(check_pipeline(sound))

# %%
# Fit and look
# ------------
#
# Predictions at points of your choice are post-processing, so they cost nothing more.

import matplotlib.pyplot as plt

sound.fit(X, y_priv, X_pub=X_pub, y_pub=y_pub)

ages = np.arange(18, 80)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (job, effect), style in zip({"none": -2, "part": 0, "full": 1}.items(), ("-", "--", ":"), strict=True):
    people = pd.DataFrame({"age": ages, "income": np.exp(10), "job": job})
    (line,) = ax.plot(ages, sound.predict_proba(people)[:, 1], style, label=f"{job}: private model")
    truth = 1 / (1 + np.exp(-(0.08 * (ages - 45) + effect)))
    ax.plot(ages, truth, color=line.get_color(), alpha=0.35, linewidth=4, label=f"{job}: truth")
ax.set(xlabel="age", ylabel="probability of a subscription", ylim=(0, 1))
ax.set_title("What the model learned, for each job", loc="left")
ax.legend(ncols=3, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15))

# %%
# The model found both effects: older people subscribe more often, and so do people with more work. The curves
# have the shape of the truth, since rows of standardised columns keep their length: an extreme age stays
# extreme. At the ends they are a little flatter than the truth, because descent under noise stops early.
