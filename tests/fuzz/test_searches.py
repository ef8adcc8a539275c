"""Searches with hostile grids, budgets, strategies and rows."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, note

from skmixdp import MixedDPLogisticRegression
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.privacy import PrivacyLedger
from tests.parameters import HOSTILE

from .limits import BAD_INPUT, attempt, check_html, check_message, finite, fuzzed, limits, one_in, pick
from .test_names import X_PUB, Y_PUB, X, Y

pytestmark = pytest.mark.filterwarnings("ignore")

GRIDS = (
    *({"algorithm": ["noisy-gd"]}, {"algorithm": ["noisy-gd", "adamix"]}, {"l2": [0.0, 1e-3]}),
    *([{"l2": [0.0]}, {"learning_rate": [0.1]}], {"n_steps": [1, 2]}, {}, [], {"l2": []}, {"nothing": [1]}),
    *({"epsilon": [1.0, 2.0]}, {"l2": 3}, {"l2": "ab"}, {"algorithm": "adamix"}, {"l2": [-1.0]}, "l2", 7),
    *({"random_state": [0, 1]}, {"ledger": [None]}, {"noise": ["float", "discrete"]}, {1: [2]}, None),
    *({"batch_size": [None, 3]}, {"delta": [1e-5]}, {"algorithm": [None, 3]}, {"l2": [np.nan]}),
)
PARAMETERS = (
    *("epsilon", "delta", "scoring", "score_share", "holdout", "strategy", "n_trials"),
    *("ledger", "estimator", "n_jobs", "verbose"),
)


@fuzzed(1)
@given(st.data())
def test_searches(data):
    """A search is charged once if it ends, and not at all if it is refused."""
    draw = data.draw
    n = draw(pick((20, 20, 8, 3, 2, 1)))
    rows, y = X[:n].copy(), Y[:n] * (not draw(one_in(6)))
    if draw(one_in(6)):
        rows[0, 0] = draw(pick((np.nan, 1e300, 5e-324, np.inf)))
    chosen = {"random_state": 0, "delta": 1e-3, "n_trials": draw(pick((None, 2, 3)))}
    for name in draw(st.lists(pick(PARAMETERS), max_size=2, unique=True)):
        chosen[name] = draw(pick(HOSTILE))
    many = chosen["n_trials"]
    assume(not (isinstance(many, (int, float)) and many is not True and many > 50))
    # Other processes would take seconds each, and nobody reads bars.
    assume(chosen.get("n_jobs") is None or isinstance(chosen["n_jobs"], bool))
    assume(not (isinstance(chosen.get("verbose"), int) and chosen["verbose"]))
    grid, public = draw(pick(GRIDS)), {} if draw(one_in(4)) else {"X_pub": X_PUB, "y_pub": Y_PUB}
    head = MixedDPLogisticRegression("noisy-gd", n_steps=None, classes=draw(pick((None, [0, 1]))))
    note(f"{grid} {chosen} n={n} {sorted(public)}")
    with limits(pickles=True):
        account = PrivacyLedger(":memory:").add_dataset("d", epsilon=1e16, delta=0.9999)
        given_ = {"estimator": head, "param_grid": grid, "ledger": account, **chosen}
        heard = attempt(lambda: PrivateSearchCV(**given_).fit(rows, y, **public), *BAD_INPUT, RuntimeError)
        n_charges = len(account.charges())
        if heard.error is not None:
            check_message(str(heard.error).replace("\n", " "))
            assert not n_charges or isinstance(heard.error, RuntimeError), "a refused search was charged"
            return
        search = heard.result
        assert n_charges == 1 or given_["ledger"] is not account
        finite("the search", search.best_estimator_.coef_, search.predict_proba(X))
        check_html(search._repr_html_(), (), scripts=99)
        assert str(search.privacy_)
