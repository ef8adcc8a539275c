"""Public rows whose head is of no use for private rows are left out."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_regression

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping, fit_many
from skmixdp.exceptions import NotPrivateWarning

X, Y = load_digits(return_X_y=True)
X_PUB, Y_PUB, X_TEST, Y_TEST = X[:100], Y[:100], X[1500:], Y[1500:]
X, Y = X[100:1500], Y[100:1500]
TURNED = np.rot90(X_PUB.reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
CHECK, UNITS, MOMENT = "check of the start", "check of units", "second moment"


def head(**parameters):
    terms = {"epsilon": 2.0, "classes": range(10), "random_state": 0}
    return MixedDPLogisticRegression(**(terms | parameters))


def without_warnings():
    """Make all warnings errors but that on the seed.

    Without a seed, the noise hides by chance that the trained head of the targets is better than its start:
    it is so by 3.8 standard deviations, in one of 17,000 fits.
    """
    warnings.simplefilter("error", UserWarning)
    warnings.simplefilter("ignore", NotPrivateWarning)


def names(fitted):
    return set(dict(fitted.privacy_.shares))


@pytest.mark.parametrize("changed", [TURNED, 16 - X_PUB])
def test_rows_of_another_kind_are_left_out(changed):
    with pytest.warns(UserWarning, match="the fit left them out; pass other public rows, or none"):
        fitted = head().fit(X, Y, changed, Y_PUB)
    alone = head().fit(X, Y)
    assert fitted.privacy_.n_public == 0
    assert fitted.score(X_TEST, Y_TEST) > alone.score(X_TEST, Y_TEST) - 0.03
    assert names(fitted) == names(alone) | {CHECK}
    assert fitted.privacy_.epsilon <= 2.0 and sum(dict(fitted.privacy_.shares).values()) == pytest.approx(1)


def test_useful_rows_are_kept():
    with warnings.catch_warnings():
        without_warnings()
        fitted = head().fit(X, Y, X_PUB, Y_PUB)
    assert fitted.privacy_.n_public == 100
    assert 0.002 <= dict(fitted.privacy_.shares)[CHECK] <= 0.02


def test_columns_keep_the_scale_that_left_out_rows_tell():
    scales = np.where(np.arange(64) == 20, 1e4, 1.0)
    with pytest.warns(UserWarning, match="left them out"):
        fitted = head().fit(X * scales, Y, (16 - X_PUB) * scales, Y_PUB)
    assert fitted.score(X_TEST * scales, Y_TEST) > 0.6
    with pytest.warns(UserWarning, match="a few columns of X"):
        alone = head(scale=False).fit(X * scales, Y)
    assert alone.score(X_TEST * scales, Y_TEST) < 0.5


#: Parameters with which no start is checked.
UNCHECKED = [{"algorithm": "adamix"}, {"init": "zeros"}, {"n_steps": 5}, {"batch_size": 300}]
UNCHECKED += [{"epsilon": 0.02}, {"rows": RowMapping(norm=None)}]
OF_CLASSES = [
    {"init": np.zeros((10, 64)), "rows": RowMapping(geometry=False)},
    {"rows": RowMapping(norm=None), "learning_rate": 1e-3},
]
OF_CLASSES += [{"rows": RowMapping(whiten=True, geometry=False)}]


@pytest.mark.parametrize("parameters", [*UNCHECKED, *OF_CLASSES])
def test_no_budget_is_spent_where_a_check_is_not_possible(parameters):
    fitted = head(**parameters).fit(X, Y, X_PUB, Y_PUB)
    assert CHECK not in names(fitted) and fitted.privacy_.n_public == 100


@pytest.mark.parametrize(
    "parameters", [{"rows": RowMapping(norm=None)}, {"rows": RowMapping(whiten=True, center=False)}]
)
def test_fits_that_need_public_rows_keep_useless_ones(parameters):
    rows = X / 64, Y, (16 - X_PUB) / 64, Y_PUB
    assert head(**parameters).fit(*rows).privacy_.n_public == 100


def test_no_row_is_refused_after_the_charge_since_public_rows_were_left_out():
    """Near the centre of the public rows it is short enough; without them the centre is zero."""
    rows, public = X * 1e27, (16 - X_PUB) * 1e27
    rows[3], public[:, 0] = 0, 4e29
    rows[3, 0] = 1.2e30
    fitted = head(rows=RowMapping(norm=None), learning_rate=1e-62, dtype="float64").fit(
        rows, Y, public, Y_PUB
    )
    assert fitted.privacy_.n_public == len(Y_PUB)


def test_heads_that_are_checked_still_share_their_passes():
    seeds = (1, 2)
    together = fit_many([head(random_state=seed) for seed in seeds], X, Y, X_PUB, Y_PUB)
    for seed, fitted in zip(seeds, together, strict=True):
        alone = head(random_state=seed).fit(X, Y, X_PUB, Y_PUB)
        np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=1e-3, atol=1e-4)


def test_the_check_counts_the_rows_of_the_fit_alone():
    useful = np.arange(len(X)) < 700
    rows = np.where(useful[:, np.newaxis], X, 16 - X)
    with pytest.warns(UserWarning, match="left them out"):
        fit_many([head()], rows, Y, X_PUB, Y_PUB, rows=[~useful])
    with warnings.catch_warnings():
        without_warnings()
        fit_many([head()], rows, Y, X_PUB, Y_PUB, rows=[useful])


# -- regressions -----------------------------------------------------------------------------

ROWS, TARGETS = make_regression(2000, 10, noise=40.0, random_state=0)
TARGETS = TARGETS + 500
NUMBERS = ROWS[100:1600], TARGETS[100:1600]
KNOWN, GIVEN = ROWS[:100], TARGETS[:100]
TEST = ROWS[1600:], TARGETS[1600:]


def ridge(**parameters):
    return MixedDPRidge(**{"epsilon": 2.0, "random_state": 0, **parameters})


def test_targets_of_another_kind_are_left_out():
    with pytest.warns(UserWarning, match="predicts private rows worse .* so the fit left them out"):
        fitted = ridge(scale=False).fit(*NUMBERS, KNOWN, 1000 - GIVEN)
    alone = ridge(scale=False, target_center=500.0, target_scale=GIVEN.std()).fit(*NUMBERS)
    assert fitted.privacy_.n_public == 0
    assert fitted.score(*TEST) > alone.score(*TEST) - 0.03
    assert names(fitted) == names(alone) | {CHECK, "scale of the targets", f"unused {MOMENT}"}
    assert fitted.privacy_.epsilon <= 2.0 and sum(dict(fitted.privacy_.shares).values()) == pytest.approx(1)


def test_useful_targets_are_kept():
    with warnings.catch_warnings():
        without_warnings()
        fitted = ridge().fit(*NUMBERS, KNOWN, GIVEN)
    assert fitted.privacy_.n_public == 100 and names(fitted) == {
        UNITS,
        CHECK,
        MOMENT,
        "training",
        "comparison",
        "residuals",
    }
    assert 0.002 <= dict(fitted.privacy_.shares)[CHECK] <= 0.02


def test_columns_of_numbers_have_a_scale_of_their_own_if_public_rows_are_left_out():
    scales = np.where(np.arange(10) == 3, 1e4, 1.0)
    with pytest.warns(UserWarning, match="left them out"):
        fitted = ridge().fit(NUMBERS[0] * scales, NUMBERS[1], KNOWN, 1000 - GIVEN)
    assert fitted.score(TEST[0] * scales, TEST[1]) > 0.7


@pytest.mark.parametrize("unit", [lambda y: 100 * y, lambda y: y / 100, lambda y: y + 5000])
@pytest.mark.parametrize("declared", [{}, {"target_center": 500.0}], ids=str)
def test_targets_have_a_scale_of_their_own_if_those_of_public_rows_are_others(unit, declared):
    with pytest.warns(UserWarning, match="the targets y_pub have another unit or centre than private ones"):
        fitted = ridge(**declared).fit(*NUMBERS, KNOWN, unit(GIVEN))
    assert fitted.score(*TEST) > ridge(**declared).fit(*NUMBERS, KNOWN, GIVEN).score(*TEST) - 0.03
    assert {UNITS, "scale of the targets"} <= names(fitted) and CHECK not in names(fitted)
    assert fitted.privacy_.epsilon <= 2.0 and sum(dict(fitted.privacy_.shares).values()) == pytest.approx(1)


def test_a_declared_scale_of_targets_stays():
    with pytest.warns(UserWarning, match="left them out"):
        fitted = ridge(target_scale=150.0, target_center=500.0).fit(*NUMBERS, KNOWN, 1000 - GIVEN)
    assert "scale of the targets" not in names(fitted) and fitted.score(*TEST) > 0.7


@pytest.mark.parametrize("parameters", [*UNCHECKED, {"rows": RowMapping(whiten=True)}])
def test_no_budget_is_spent_where_targets_cannot_be_checked(parameters):
    fitted = ridge(**parameters).fit(*NUMBERS, KNOWN, GIVEN)
    assert CHECK not in names(fitted) and fitted.privacy_.n_public == 100


def test_nine_public_targets_are_not_checked():
    assert names(ridge().fit(*NUMBERS, KNOWN[:9], GIVEN[:9])) == {"columns", MOMENT, "training", "residuals"}


def test_a_start_that_is_better_than_the_head_is_returned():
    """Steps that are far too long leave little but noise."""
    with pytest.warns(UserWarning, match="the 100 public rows suffice: .* so the start is returned"):
        fitted = ridge(epsilon=0.5, learning_rate=100.0).fit(*NUMBERS, KNOWN, GIVEN)
    still = ridge(epsilon=0.5, learning_rate=1e-300).fit(*NUMBERS, KNOWN, GIVEN)
    np.testing.assert_allclose(fitted.predict(TEST[0]), still.predict(TEST[0]), rtol=1e-5, atol=1e-3)
