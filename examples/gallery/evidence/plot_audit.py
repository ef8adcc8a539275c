"""
Auditing a fit
==============

A proof bounds epsilon from above. An audit attacks the running code and bounds epsilon from below. If the
lower bound exceeds the claim, something is broken. This example audits two algorithms, and one that was
broken on purpose.
"""

# %%
# Two algorithms
# --------------
#
# Half of the fits include a *canary*, a row that is easy to detect. The attacker sees every noisy sum and
# all other rows, and guesses which fits had the canary. The rows are synthetic, because an audit is not
# private.

import numpy as np

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.audit import audit_epsilon

rng = np.random.default_rng(0)
centres = rng.normal(size=(4, 8))
y, y_pub = np.arange(100) % 4, np.arange(24) % 4
X, X_pub = centres[y] + rng.normal(size=(100, 8)), centres[y_pub] + rng.normal(size=(24, 8))


def audit(factory):
    return audit_epsilon(factory, X, y, X_pub=X_pub, y_pub=y_pub, n_fits=100, confidence=0.99)


results = {
    type(algorithm).__name__: audit(
        lambda algorithm=algorithm: MixedDPLogisticRegression(algorithm, epsilon=4.0, n_steps=2)
    )
    for algorithm in (NoisyGD(), AdaMix())
}

# %%
# One that is broken
# ------------------
#
# This class claims epsilon 1 and spends epsilon 20. An audit must notice.

import dataclasses
import warnings

from skmixdp.privacy import mu_of_budget


class Overspending(MixedDPLogisticRegression):
    """Claims a twentieth of what it spends."""

    def fit(self, X, y, X_pub=None, y_pub=None):
        self.set_params(epsilon=20.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so much guarantees next to nothing
            super().fit(X, y, X_pub=X_pub, y_pub=y_pub)
        self.privacy_ = dataclasses.replace(self.privacy_, epsilon=1.0, mu=mu_of_budget(1.0, self.delta))
        return self


results["broken on purpose"] = audit(lambda: Overspending(NoisyGD(), n_steps=2))
print({name: result.exceeds_claim for name, result in results.items()})

# %%
# Claims and bounds
# -----------------

from skmixdp.inspection import AuditDisplay

AuditDisplay.from_results(results)

# %%
# The lower bounds of the two algorithms stay below their claims. This does not prove the claims, but it
# refutes none. The broken class is caught: both of its lower bounds exceed the claim.
