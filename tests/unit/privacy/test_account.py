"""What a charge makes of an account, number by number, and which accounts cannot be."""

import math

import numpy as np
import pytest

from skmixdp.exceptions import BudgetExceededError
from skmixdp.privacy import GaussianEvent, epsilon_of_event
from skmixdp.privacy.accounting.composition import divergences_of
from skmixdp.privacy.accounting.gaussian import ORDERS, epsilon_for, epsilon_of_rdp, mu_for
from tests.private_names import Account, LedgerReport
from tests.rounding import assert_relative

ADD, REPLACE = "add_or_remove_one", "replace_one"
DELTA = 1e-5
FULL = GaussianEvent(30.0, 9)  # mu = 0.1
DISCRETE = GaussianEvent(30.0, 9, noise="discrete")
ZEROS = (0.0,) * len(ORDERS)


def test_full_batches_add_up_their_squares():
    account = Account("a", 3.0, DELTA)
    for n in range(1, 4):
        account = account.after(FULL, ADD, private=n != 2)
        assert account.total == pytest.approx(0.01 * n, rel=1e-14)
        assert account.spent == pytest.approx(epsilon_for(math.sqrt(0.01 * n), DELTA), rel=1e-12)
        assert (account.n_charges, account.divergences) == (n, ())
        left = math.sqrt(mu_for(3.0, DELTA) ** 2 - 0.01 * n)
        assert account.remaining == pytest.approx(epsilon_for(left, DELTA), rel=1e-12)
    assert (account.neighboring, account.composition, account.order) == (ADD, "gaussian", None)
    assert account.private is False  # one seed is enough
    assert (account.epsilon, account.delta, account.dataset) == (3.0, DELTA, "a")


def test_divergences_add_up_at_every_order():
    account = Account("a", 3.0, DELTA)
    each = divergences_of(DISCRETE, ADD)
    for n in range(1, 4):
        account = account.after(DISCRETE, ADD)
        assert_relative(account.divergences, n * each, 1e-14)
        total = dict(zip(ORDERS, account.divergences, strict=True))[account.order]
        assert account.total == pytest.approx(total, rel=1e-14)
        if n > 1:
            assert account.spent == epsilon_of_rdp(np.array(account.divergences), DELTA, ORDERS)
    # What is left at the order goes to one full batch: mu**2 / 2 times the order.
    mu = math.sqrt((account._filter.limit - account.total) * 2 / account.order)
    assert account.remaining == pytest.approx(epsilon_for(mu, DELTA), rel=1e-12)
    assert account.private is True


@pytest.mark.untraced
def test_nothing_is_left_of_a_budget_that_is_spent():
    account = Account("a", 1.0, DELTA)
    assert account.remaining == 1.0
    whole = GaussianEvent(1 / mu_for(1.0, DELTA), 1)
    assert account.after(whole, ADD).remaining < 1e-3
    first = GaussianEvent(0.8, 3, 0.001)  # fits by its own accountant alone
    small = Account("a", epsilon_of_event(first, DELTA, ADD) * 1.001, DELTA).after(first, ADD)
    assert small.remaining == 0.0
    with pytest.raises(BudgetExceededError, match="use a smaller epsilon"):
        small.after(FULL, ADD)


GAUSSIAN = {"neighboring": ADD, "composition": "gaussian", "n_charges": 1, "total": 0.01, "spent": 0.3}
RENYI = {**GAUSSIAN, "composition": "renyi", "order": 2.0, "divergences": ZEROS}


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({**RENYI, "order": 2.05}, "order=2.05 must be a Renyi order"),
        ({**GAUSSIAN, "order": 2.0}, "order=2.0 must be set by"),
        ({**RENYI, "order": None}, "order=None must be set by"),
        ({"composition": "renyi", "order": 2.0}, "order=2.0 must be set by"),
        ({**RENYI, "divergences": ZEROS[1:]}, "divergences must hold 165 numbers"),
        ({**RENYI, "divergences": (*ZEROS[1:], -0.5)}, "divergences=-0.5 must be"),
        ({**RENYI, "divergences": (*ZEROS[1:], math.nan)}, "divergences=nan must be"),
        ({**GAUSSIAN, "total": -0.5}, "total=-0.5 must be"),
        ({**GAUSSIAN, "spent": "0.3"}, "spent='0.3' must be"),
        ({**GAUSSIAN, "n_charges": -1}, "n_charges=-1 must be"),
        ({**GAUSSIAN, "neighboring": None}, "must say its neighboring and its composition"),
        ({**GAUSSIAN, "composition": None}, "must say its neighboring and its composition"),
        ({"composition": "pld"}, "composition='pld' must be 'gaussian'"),
        ({"neighboring": "both"}, "neighboring='both' must be 'add_or"),
        ({"epsilon": 0.0}, "epsilon=0.0 must be"),
        ({"delta": 1.0}, "delta=1.0 must"),
    ],
)
def test_an_account_that_cannot_be_is_refused(fields, match):
    with pytest.raises(ValueError, match=match.replace(".", r"\.")):
        Account(**{"dataset": "a", "epsilon": 1.0, "delta": DELTA, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {},
        GAUSSIAN,
        RENYI,
        {**RENYI, "total": math.inf, "spent": math.inf, "divergences": (math.inf, *ZEROS[1:])},
        {"composition": "renyi"},
        {"neighboring": REPLACE},
        {**GAUSSIAN, "total": 0.0},
    ],
)
def test_an_account_that_can_be_is_not(fields):
    assert Account("a", 1.0, DELTA, **fields).dataset == "a"


def test_columns_of_the_printed_ledger_are_as_wide_as_their_widest_cell():
    accounts = (Account("a", 1.0, DELTA), Account("a long name", 1.0, DELTA))
    lines = str(LedgerReport(accounts, ())).splitlines()[1:]
    starts = [lines[0].index("spent"), lines[1].index(" 0 ") + 1, lines[2].index(" 0 ") + 1]
    assert starts == [15, 15, 15]
