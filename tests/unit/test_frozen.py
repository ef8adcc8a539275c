"""What was stated, charged or counted cannot be changed afterwards."""

from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from skmixdp import privacy
from skmixdp.algorithms import modelmix
from skmixdp.privacy.accounting import budgets, composition, selection
from tests.private_names import LedgerReport, RecordedRelease
from tests.private_names import _account as account

STATED = [
    *(account.Account, budgets.Budget, composition.PrivacyFilter, RecordedRelease, privacy.Charge),
    *(privacy.GaussianEvent, LedgerReport, modelmix.ModelMixEvent, privacy.PrivacyReport),
    *(privacy.SearchReport, selection.SearchTerms, privacy.SelectionEvent, selection.TrialLaw),
]


@pytest.mark.parametrize("kind", STATED)
def test_it_is_frozen(kind):
    made = object.__new__(kind)
    assert is_dataclass(kind)
    for field in fields(kind):
        with pytest.raises(FrozenInstanceError):
            setattr(made, field.name, 0)
