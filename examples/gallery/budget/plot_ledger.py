"""
A budget across a project
=========================

One report describes one fit. A project makes many: a first model, a cross-validation, next month's model. A
ledger adds them up and refuses the fit that would exceed the budget.
"""

# %%
# A ledger
# --------
#
# The data set ``patients`` has a budget of epsilon 3 for ever. A ledger is a file; this one lives in
# memory.

import numpy as np
import sklearn
from sklearn.datasets import load_digits

from skmixdp import MixedDPLogisticRegression
from skmixdp.exceptions import BudgetExceededError
from skmixdp.model_selection import public_cross_val_score
from skmixdp.privacy import PrivacyLedger

sklearn.set_config(enable_metadata_routing=True)
X, y = load_digits(return_X_y=True)
public, private = np.split(np.random.default_rng(0).permutation(len(y)), [100])
X_pub, y_pub, X, y = X[public], y[public], X[private], y[private]

ledger = PrivacyLedger(":memory:")
patients = ledger.add_dataset("patients", epsilon=3.0, delta=1e-5)

# %%
# A project
# ---------
#
# A first model, a cross-validation of five fits with scores on public rows, and a model every month. Each
# fit is charged before its first release.

MixedDPLogisticRegression("adamix", epsilon=1.0, ledger=patients).fit(X, y, X_pub=X_pub, y_pub=y_pub)

member = MixedDPLogisticRegression("adamix", epsilon=0.5, ledger=patients)
public_cross_val_score(member, X, y, X_pub, y_pub, cv=5)
print(f"spent: epsilon {patients.spent:.2f}, where the six fits add up to {1.0 + 5 * 0.5}")

months = 0
try:
    while True:
        MixedDPLogisticRegression("adamix", epsilon=1.0, ledger=patients).fit(X, y, X_pub=X_pub, y_pub=y_pub)
        months += 1
except BudgetExceededError as error:
    print(f"after {months} months: {error}")

# %%
# What was spent
# --------------

from skmixdp.inspection import LedgerDisplay

display = LedgerDisplay.from_ledger(ledger, over="charges")

# %%
# Six fits cost much less than the sum of their epsilons, because the ledger adds up mechanisms. Each month
# then takes about a tenth of the budget. The next fit would end above the line, so it was refused before it
# released anything.
