"""Which seeds are warned of: the table of releases has one of each; here are its other kinds and places."""

import warnings

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, fit_many
from skmixdp.exceptions import NotPrivateWarning

DELTA = 1e-3


def warned_by(action, *args, **kwargs):
    with warnings.catch_warnings(record=True, action="always") as caught:
        result = action(*args, **kwargs)
    return result, [w for w in caught if issubclass(w.category, NotPrivateWarning)]


@pytest.mark.parametrize("seed", [np.int64(3), np.random.RandomState(0)], ids=["NumPy", "state"])
def test_a_seed_of_any_kind_is_warned_of_once(rows, seed):
    fitted, warned = warned_by(MixedDPLogisticRegression(delta=DELTA, random_state=seed).fit, *rows)
    assert not fitted.privacy_.private and len(warned) == 1 and warned[0].filename == __file__


def test_one_seeded_head_of_many_is_warned_of(rows):
    heads = [MixedDPLogisticRegression(delta=DELTA, random_state=seed) for seed in (None, 0, None)]
    _, warned = warned_by(fit_many, heads, *rows)
    assert len(warned) == 1 and [head.privacy_.private for head in heads] == [True, False, True]
    _, warned = warned_by(heads[1].fit, *rows)
    assert len(warned) == 1  # what fit_many said it said for its own fits alone
