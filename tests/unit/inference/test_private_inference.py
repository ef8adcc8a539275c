"""Coefficients and intervals of private regressions: right values, what is refused, and what is said."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skmixdp import Typical
from skmixdp.inference import private_inference
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.noise import watch
from tests.property.test_charges_add_up import assert_adds_up_to

pytestmark = pytest.mark.filterwarnings(
    "ignore:delta:UserWarning", "ignore::skmixdp.exceptions.NotPrivateWarning"
)

N, D = 6000, 3
SLOPES = np.array([0.8, -0.5, 0.0])
SCALES = {0: Typical(50.0, 10.0), 1: Typical(0.0, 1e-3), 2: Typical(-3.0, 1.0)}


def rows(seed=0, n=N):
    """Rows whose columns have the centres and spreads of ``SCALES``, and standardised ones."""
    Z = np.random.default_rng(seed).normal(size=(n, D))
    center, spread = np.array(list(SCALES.values())).T
    return center + spread * Z, Z, spread


def binary(seed=0, n=N):
    X, Z, spread = rows(seed, n)
    y = (np.random.default_rng([seed, 1]).random(n) < expit(Z @ SLOPES - 0.5)).astype(int)
    return X, y, SLOPES / spread


def linear(seed=0, n=N):
    X, Z, spread = rows(seed, n)
    y = 100 + 7 * (Z @ SLOPES + np.random.default_rng([seed, 1]).normal(size=n))
    return X, y, 7 * SLOPES / spread


def counted(seed=0, n=N):
    X, Z, spread = rows(seed, n)
    y = np.random.default_rng([seed, 1]).poisson(np.exp(Z @ SLOPES - 0.5))
    return X, y, SLOPES / spread


#: What makes rows and outcomes of a family, and what else is known of it.
FAMILIES = {"logistic": (binary, {"classes": [0, 1]}), "gaussian": (linear, {}), "poisson": (counted, {})}
families = pytest.mark.parametrize("family", FAMILIES)


def of_family(family, seed=0, n=N):
    """Rows, outcomes, slopes, and the parameters of a result."""
    made, known = FAMILIES[family]
    return *made(seed, n), {"family": family, **known}


def n_covered(result, slopes):
    """How many intervals hold the slopes."""
    interval = result.conf_int().iloc[1:]
    return int(((interval["low"] < slopes) & (slopes < interval["high"])).sum())


def weighted(Z):
    """The weights of the method for standardised rows."""
    return np.minimum(1, (D + 1) / (1 + (Z**2).sum(axis=1)))


def known_estimate(family, Z, y, weights):
    """Slopes of the weighted estimate on standardised rows, scores of rows, and the inverse Hessian."""
    A = np.c_[np.ones(N), Z]
    if family == "logistic":
        model = LogisticRegression(C=np.inf, tol=1e-10).fit(Z, y, sample_weight=weights)
        slopes, p = model.coef_[0], model.predict_proba(Z)[:, 1]
        residuals, hessian = y - p, (A * (weights * p * (1 - p))[:, np.newaxis]).T @ A
    elif family == "poisson":
        model = PoissonRegressor(alpha=0, tol=1e-10).fit(Z, y, sample_weight=weights)
        slopes, p = model.coef_, model.predict(Z)
        residuals, hessian = y - p, (A * (weights * p)[:, np.newaxis]).T @ A
    else:
        hessian = (A * weights[:, np.newaxis]).T @ A
        known = np.linalg.solve(hessian, A.T @ (weights * y))
        slopes, residuals = known[1:], y - A @ known
    return slopes, (weights * residuals)[:, np.newaxis] * A, np.linalg.inv(hessian)


def robust_errors(scores, bread):
    return np.sqrt(np.diag(bread @ scores.T @ scores @ bread))[1:]


def test_with_much_budget_it_is_the_weighted_maximum_likelihood_estimate():
    X, y, _ = binary()
    result = private_inference(X, y, epsilon=1e7, classes=[0, 1], scale=SCALES)
    _, Z, spread = rows()
    slopes, _, bread = known_estimate("logistic", Z, y, weighted(Z))
    np.testing.assert_allclose(result.params.to_numpy()[1:] * spread, slopes, atol=2e-3)
    errors = np.sqrt(np.diag(bread))[1:]
    np.testing.assert_allclose(result.bse.to_numpy()[1:] * spread, errors, rtol=0.01, atol=0)
    assert (result.summary()["from noise"] < 1e-3).all()


@pytest.mark.parametrize("cov", ["model", "robust"])
def test_with_much_budget_it_is_weighted_least_squares(cov):
    X, y, _ = linear()
    result = private_inference(X, y, family="gaussian", epsilon=1e7, scale=SCALES, cov=cov)
    _, Z, spread = rows()
    slopes, scores, bread = known_estimate("gaussian", Z, y, weighted(Z))
    np.testing.assert_allclose(result.params.to_numpy()[1:] * spread, slopes, atol=0.02)
    assert result.cov_type == cov
    errors = robust_errors(scores, bread)
    if cov == "model":
        errors = np.sqrt(np.diag(bread))[1:] * np.std(scores[:, 0] / weighted(Z))
    np.testing.assert_allclose(result.bse.to_numpy()[1:] * spread, errors, rtol=0.03, atol=0)


@families
@pytest.mark.parametrize("cov", [{}, {"cov": "robust"}], ids=["default", "robust"])
def test_intervals_cover(family, cov):
    """30 data sets of 3 slopes: fewer than 76 or more than 90 of 90 is rarer than 1e-4 at coverage .95."""
    inside = 0
    for seed in range(30):
        X, y, slopes, options = of_family(family, seed)
        result = private_inference(X, y, epsilon=2.0, random_state=seed, **options, **cov)
        inside += n_covered(result, slopes)
        assert result.identified.all() and not result.hidden_columns
    assert inside >= 76


def test_several_classes_cover_and_name_the_reference():
    inside = 0
    for seed in range(20):
        X, Z, spread = rows(seed)
        slopes = np.array([SLOPES, [0.0, 0.4, 0.6]])
        scores = np.c_[np.zeros(N), Z @ slopes.T] + np.random.default_rng([seed, 2]).gumbel(size=(N, 3))
        y = np.array(["a", "b", "c"])[scores.argmax(axis=1)]
        result = private_inference(X, y, epsilon=4.0, classes=["a", "b", "c"], random_state=seed)
        interval = result.conf_int()
        for label, true in zip("bc", slopes, strict=True):
            part = interval.loc[label].iloc[1:]
            inside += int(((part["low"] < true / spread) & (true / spread < part["high"])).sum())
    assert inside >= 104  # of 120
    assert "log-odds against class a" in str(result)
    assert list(result.params.index)[1] == ("b", "x0")


@families
def test_persons_whose_rows_are_alike(family):
    """Model-based errors of rows would be far too small, and those of mean rows too large."""
    inside, m = 0, 5
    for seed in range(20):
        rng = np.random.default_rng([seed, 3])
        Z = np.repeat(rng.normal(size=(N // 2, 2)), m, axis=0)
        groups = np.repeat(np.arange(N // 2), m)
        if family == "logistic":
            y = (Z @ [0.5, 0.0] + np.repeat(rng.logistic(size=N // 2), m) > 0).astype(int)
        elif family == "poisson":
            y = np.repeat(rng.poisson(np.exp(Z[::m] @ [0.5, 0.0])), m)
        else:
            y = Z @ [0.5, 0.0] + np.repeat(rng.normal(size=N // 2), m)
        options = {"family": family, **FAMILIES[family][1]}
        result = private_inference(Z, y, epsilon=4.0, groups=groups, random_state=seed, **options)
        inside += n_covered(result, [0.5, 0.0])
    assert inside >= 32  # of 40
    assert result.cov_type == "robust" and result.n_private == N // 2
    assert result.privacy_.unit == "person" and "private persons" in str(result)


@families
def test_with_much_budget_persons_count_by_their_means(family):
    """Errors are those of the outer products of persons' mean scores, not of the mean outer products."""
    X, y, _, options = of_family(family)
    _, Z, spread = rows()
    options |= {"target_scale": (100.0, 10.0)} if family == "gaussian" else {}
    result = private_inference(X, y, epsilon=1e7, scale=SCALES, groups=np.arange(N) // 3, **options)
    _, scores, bread = known_estimate(family, Z, y, weighted(Z))
    errors = robust_errors(scores.reshape(N // 3, 3, D + 1).sum(axis=1), bread)
    np.testing.assert_allclose(result.bse.to_numpy()[1:] * spread, errors, rtol=0.03, atol=0)


def test_public_rows_count():
    X, y, _ = binary()
    alone = private_inference(X[:2000], y[:2000], epsilon=1.0, classes=[0, 1], random_state=0)
    more = private_inference(X[:2000], y[:2000], epsilon=1.0, X_pub=X[2000:], y_pub=y[2000:], random_state=0)
    assert more.n_public == N - 2000
    assert (more.bse.iloc[1:] < 0.75 * alone.bse.iloc[1:]).all()


@pytest.mark.parametrize("value", [1e20, 1e160, 1.7e308])
@families
def test_huge_public_numbers_end_no_inference(family, value):
    """Private ones are cut, and so are these: what is charged gives a result."""
    X, y, _, options = of_family(family)
    X_pub, y_pub = X[-40:].copy(), y[-40:].astype(np.float64)
    X_pub[[3, 4], 1] = value
    if family != "logistic":
        y_pub[[5, 6]] = value
    result = private_inference(X, y, epsilon=8.0, X_pub=X_pub, y_pub=y_pub, random_state=0, **options)
    assert np.isfinite(result.params).all()


def test_constant_public_targets_do_not_tell_their_scale():
    X, y, _ = linear()
    public = {"X_pub": X[-40:], "y_pub": np.full(40, 100.0)}
    result = private_inference(X, y, epsilon=8.0, family="gaussian", random_state=0, **public)
    assert np.isfinite(result.params).all()


@families
def test_with_much_budget_sample_weights_give_the_weighted_estimate_and_robust_errors(family):
    X, y, _, options = of_family(family)
    _, Z, spread = rows()
    w = np.random.default_rng(3).lognormal(size=N) * (np.arange(N) % 7 > 0)
    result = private_inference(
        X[:4000],
        y[:4000],
        X_pub=X[4000:],
        y_pub=y[4000:],
        sample_weight=w[:4000],
        sample_weight_pub=w[4000:],
        epsilon=1e7,
        max_sample_weight=5.0,
        scale=SCALES,
        **options,
    )
    slopes, scores, bread = known_estimate(family, Z, y, weighted(Z) * np.minimum(w, 5))
    scale = 7 if family == "gaussian" else 1
    np.testing.assert_allclose(result.params.to_numpy()[1:] * spread, slopes, atol=4e-3 * scale)
    errors = robust_errors(scores, bread)
    np.testing.assert_allclose(result.bse.to_numpy()[1:] * spread, errors, rtol=0.03, atol=0)
    assert result.cov_type == "robust"


@families
def test_only_ratios_of_sample_weights_count(family):
    """The same holds for a noisy largest weight, which is cut where the noise of its histogram says."""
    X, y, _, options = of_family(family)
    w = np.random.default_rng(3).lognormal(size=N)
    for largest, most in ((4.0, 1e-6), ("auto", 0.7)):
        first, *others = (
            private_inference(
                X,
                y,
                sample_weight=unit * w,
                max_sample_weight=largest if largest == "auto" else unit * largest,
                epsilon=2.0,
                random_state=0,
                **options,
            )
            for unit in (1.0, 1e6, 1e-6)
        )
        for other in others:
            assert (np.abs(other.params - first.params) < most * first.bse).all()


@families
def test_intervals_cover_the_population_of_a_weighted_sample(family):
    """Rows are drawn by their outcome, and weights undo that; intervals without weights miss."""
    inside = missed = 0
    for seed in range(15):
        X, y, slopes, options = of_family(family, seed, 4 * N)
        rare = y > 100 if family == "gaussian" else y * (X[:, 0] > 50) > 0
        kept = np.random.default_rng([seed, 5]).random(len(y)) < np.where(rare, 0.2, 0.6)
        X, y, w = X[kept], y[kept], np.where(rare, 3.0, 1.0)[kept]
        options |= {"epsilon": 4.0, "random_state": seed}
        inside += n_covered(private_inference(X, y, sample_weight=w, **options), slopes)
        interval = private_inference(X, y, **options).conf_int().iloc[1]
        missed += not interval["low"] < slopes[0] < interval["high"]
    assert inside >= 37 and missed >= 10  # of 45 and of 15


@families
@pytest.mark.parametrize("off", [(0.0, 30.0), (0.0, 1 / 30), (2.0, 1.0), (20.0, 1.0)])
def test_wrong_scales_widen_intervals_and_move_none(family, off):
    """A column's histogram may take noise for rows: whatever scale it finds, intervals cover."""
    scores = []
    for seed in range(8):
        X, y, slopes, options = of_family(family, seed)
        options |= {"target_scale": (100.0, 700.0)} if family == "gaussian" else {}
        center, spread = SCALES[0]
        wrong = {**SCALES, 0: Typical(center + off[0] * spread, spread * off[1])}
        result = private_inference(X, y, epsilon=3.0, scale=wrong, random_state=seed, **options)
        z = ((result.params.iloc[1:] - slopes) / result.bse.iloc[1:])[result.identified.iloc[1:]]
        if off[1] > 1:  # a column that noise hides; the other coefficients are those without it
            assert not result.identified["x0"]
            continue
        scores.extend(z)
        if off[0] == 20:
            assert not result.identified.any() and "far from the centre of x0" in str(result)
    # Mean squares of at most 24 scores; 3 is rarer than 1e-6. Rows that count as long hide rates.
    if family != "poisson" or off[1] == 1:
        assert len(scores) == (24 if off[0] < 20 and off[1] <= 1 else 0)
    assert not scores or np.mean(np.square(scores)) < 3


def test_sources_agree():
    """Rows of every kind give the same result, up to rounding, which the noise covers."""
    X, y, _ = binary()
    first = private_inference(X, y, classes=[0, 1], scale=SCALES, random_state=0)
    frame = pd.DataFrame(X, columns=["age", "dose", "third"])
    by_name = {"age": SCALES[0], "dose": SCALES[1], "third": SCALES[2]}
    for other, scale in ((frame, by_name), (sp.csr_array(X), SCALES)):
        found = private_inference(other, y, classes=[0, 1], scale=scale, random_state=0)
        off = (found.params.to_numpy() - first.params) / first.bse
        np.testing.assert_allclose(off, 0, atol=1e-3)
    assert list(private_inference(frame, y, classes=[0, 1]).params.index) == [
        "intercept",
        "age",
        "dose",
        "third",
    ]


def test_a_hidden_column_is_left_out_and_named_and_no_interval_is_stated():
    """Columns of zeros have no spread; one of unit 1e6 has. Others may be correlated with those of zeros."""
    X, y, _ = binary()
    X = np.c_[X * [1, 1, 1e6], np.zeros(N)]
    result = private_inference(X, y, classes=[0, 1], epsilon=3.0, random_state=0)
    assert result.hidden_columns == ("x3",) and not result.identified.any()
    sentence = result.summary().attrs["note"]
    assert "x3" in sentence and sentence in str(result) and result.pvalues.isna().all()
    assert list(result.params.index) == ["intercept", "x0", "x1", "x2"]


def confounded(n, rare, seed=0, offset=0.0):
    """A rare column of zeros and ones, and one that is correlated with it and has no effect of its own."""
    rng = np.random.default_rng(seed)
    flags = rng.random(n) < rare
    noise = rng.normal(size=n)
    y = (rng.random(n) < expit(1.5 * flags - 0.5)).astype(int)
    return np.column_stack([flags.astype(float), noise + 2 * flags + offset]), y


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_column_of_many_rows_is_kept_and_spoils_no_other(seed):
    X, y = confounded(200_000, 0.02, seed)
    result = private_inference(X, y, classes=[0, 1], random_state=seed)
    assert not result.hidden_columns and abs(result.zvalues["x1"]) < 4
    assert abs(result.params["x0"] - 1.5) < 4 * result.bse["x0"]


def test_zeros_and_ones_of_an_encoder_need_no_histogram():
    """In so few rows, noise would hide the spread of a column of which 2% are ones."""
    X, y = confounded(20_000, 0.02)
    frame = pd.DataFrame({"flag": np.where(X[:, 0] == 1, "yes", "no"), "x": X[:, 1]})
    encoder = TableEncoder({"flag": ["no", "yes"], "x": (-8, 8)}).fit(frame)
    result = private_inference(frame, y, classes=[0, 1], encoder=encoder, random_state=0)
    assert not result.hidden_columns and abs(result.params["x"]) < 4 * result.bse["x"]


@pytest.mark.parametrize("offset", [1e3, 65536.0, 1e6])
def test_columns_far_from_zero_are_kept_and_spend_what_is_accounted_for(monkeypatch, offset):
    X, y = confounded(N, 0.4, offset=offset)
    log = watch(monkeypatch)
    result = private_inference(X, y, classes=[0, 1], epsilon=2.0, random_state=0)
    assert not result.hidden_columns and result.identified[["x0", "x1"]].all()
    assert abs(result.params["x0"] - 1.5) < 4 * result.bse["x0"]
    assert any(each.exact.size == 63 for each in log)
    assert_adds_up_to(log, result.privacy_.mu)


def test_collinear_columns_are_not_identified():
    X, y, _ = binary()
    result = private_inference(np.c_[X, 2 * X[:, 0]], y, classes=[0, 1], epsilon=3.0, random_state=0)
    assert list(result.identified) == [True, False, True, True, False]
    assert np.isnan(result.pvalues["x0"]) and result.conf_int().loc["x3"].isna().all()
    assert "Not identified" in str(result)
    assert result.pvalues["x1"] < 0.05
    contrasts = result.t_test(["x0", "x1"])["p"]
    assert np.isnan(contrasts.iloc[0]) and np.isfinite(contrasts.iloc[1])
    assert np.isnan(result.wald_test(["x0", "x1"])["p"])
    assert result.get_prediction(np.c_[X, 2 * X[:, 0]][:5])["low"].isna().all()


def test_separated_classes_have_no_pvalues():
    X, _, _ = binary()
    y = (X[:, 0] > 50).astype(int)
    for epsilon in (3.0, 30.0, 300.0):
        result = private_inference(X, y, classes=[0, 1], epsilon=epsilon, random_state=0)
        assert not result.identified.any() and "separate" in str(result)
    y = (np.random.default_rng(0).random(N) < expit(0.5 * (X[:, 0] - 50))).astype(int)
    assert private_inference(X, y, classes=[0, 1], epsilon=3.0, random_state=0).identified.all()


def test_strong_effects_of_rare_groups_are_found():
    """Steps by the curvature alone overshoot where nearly no row without the effect has an event."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        exposed = rng.random(100_000) < 0.05
        y = (rng.random(len(exposed)) < np.where(exposed, 0.3, 0.02)).astype(int)
        X = exposed[:, np.newaxis].astype(float)
        result = private_inference(X, y, epsilon=4.0, classes=[0, 1], scale={0: Typical(0.05, 0.2)})
        assert result.identified.all()
        assert abs(result.params["x0"] - 3.04) < 5 * result.bse["x0"] < 1


def test_effects_that_steps_do_not_reach_have_no_interval():
    rng = np.random.default_rng(0)
    Z, group = rng.normal(size=(100_000, 2)), rng.random(100_000) < 0.3
    for strength, arrives in ((5.0, True), (10.0, False)):
        y = (rng.random(len(Z)) < expit(strength * Z[:, 0])).astype(int)
        result = private_inference(Z, y, epsilon=8.0, classes=[0, 1])
        assert result.identified["x0"] == arrives
        assert not arrives or abs(result.params["x0"] - strength) < 5 * result.bse["x0"]
    # No row of the group has an event: its coefficient goes on for ever, and the other stays.
    y = (rng.random(len(Z)) < expit(Z[:, 0] - 1) * ~group).astype(int)
    scale = {0: Typical(0.3, 0.5), 1: Typical(0.0, 1.0)}
    result = private_inference(np.c_[group, Z[:, 0]], y, epsilon=8.0, classes=[0, 1], scale=scale)
    assert list(result.identified) == [True, False, True] and "no event" in str(result)
    assert abs(result.params["x1"] - 1) < 5 * result.bse["x1"]


def test_dummies_of_all_categories_leave_no_intercept():
    rng = np.random.default_rng(0)
    X, y = np.eye(4)[rng.integers(0, 4, 20_000)], rng.integers(0, 2, 20_000)
    scale = dict.fromkeys(range(4), Typical(0.25, 0.43))
    result = private_inference(X, y, epsilon=2.0, classes=[0, 1], scale=scale)
    assert not result.identified.any()
    assert private_inference(X[:, 1:], y, epsilon=2.0, classes=[0, 1]).identified.all()


@pytest.mark.parametrize("spread", [0.5, 1.5])
def test_skewed_targets_are_covered(spread):
    """Errors in proportion to the mean: a cut moves slopes. 60 intervals; 48 of them is rarer than 1e-5."""
    inside = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = (rng.normal(size=(10_000, 5)) > 0).astype(float)
        slopes = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
        y = (1 + X @ slopes) * np.exp(spread * rng.normal(size=len(X)) - spread**2 / 2)
        result = private_inference(X, y, family="gaussian", epsilon=2.0, cov="robust", random_state=seed)
        inside += n_covered(result, slopes)
    assert inside >= 49


@pytest.mark.parametrize("unit", [1.0, 365.0])
def test_exposures_give_rates(unit):
    """Of clustered counts with exposures in years or days; 45 of 60 intervals is rarer than 1e-6."""
    inside = 0
    for seed in range(20):
        X, _, slopes = counted(seed, 4 * N)
        rng = np.random.default_rng([seed, 7])
        years = rng.uniform(0.02, 2, len(X))
        means = (
            years * np.exp(X @ slopes - 0.5 - 50 * slopes[0] - 3 * slopes[2]) * rng.gamma(2.0, 0.5, len(X))
        )
        options = {"epsilon": 3.0, "cov": "robust", "random_state": seed, "exposure": unit * years}
        result = private_inference(X, rng.poisson(means), family="poisson", **options)
        inside += n_covered(result, slopes)
        assert result.identified.all()
    assert inside >= 46
    assert "log of the rate" in str(result)
    ratios = result.rate_ratios()
    np.testing.assert_allclose(ratios["rate_ratio"], np.exp(result.params.iloc[1:]), rtol=1e-9, atol=0)


def test_counts_in_any_unit_of_exposure_are_the_same_rates():
    X, y, _ = counted()
    years = np.random.default_rng(3).uniform(0.1, 2, N)
    first, second = (
        private_inference(X, y, family="poisson", exposure=unit * years, epsilon=50.0, random_state=0)
        for unit in (1.0, 1000.0)
    )
    off = (second.params - first.params + [np.log(1000), 0, 0, 0]) / first.bse
    assert (np.abs(off) < 2).all()


def test_results_read_like_those_of_statsmodels():
    X, y, _ = binary()
    result = private_inference(X, y, classes=[0, 1], epsilon=3.0, confidence=0.9, random_state=0)
    np.testing.assert_allclose(result.zvalues, result.params / result.bse, atol=1e-9)
    wider = result.conf_int(confidence=0.99)
    assert (wider["low"] < result.conf_int()["low"]).all()
    odds = result.odds_ratios()
    assert list(odds.columns) == ["odds_ratio", "low", "high"] and len(odds) == D
    np.testing.assert_allclose(odds["odds_ratio"], np.exp(result.params.iloc[1:]), atol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(result.cov_params())), result.bse, atol=1e-9)
    adjusted = result.adjusted_pvalues()
    assert np.isnan(adjusted["intercept"])
    by_holm = np.maximum.accumulate(np.sort(result.pvalues.iloc[1:]) * [3, 2, 1])
    np.testing.assert_allclose(np.sort(adjusted.iloc[1:]), np.minimum(by_holm, 1), atol=1e-12)
    assert list(result.summary().columns[-3:]) == ["[0.05", "0.95]", "from noise"]
    mpl.use("agg")
    assert len(result.plot().get_yticks()) == D


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"family": "probit"}, "family='probit'"),
        ({"family": "poisson"}, "has no classes"),
        ({"exposure": np.ones(N)}, "exposure and exposure_pub are for family='poisson'"),
        ({"family": "poisson", "classes": None, "exposure": np.zeros(N)}, "exposure must hold positive"),
        ({"family": "poisson", "classes": None, "exposure": [1.0]}, "exposure has 1 exposures"),
        ({"family": "poisson", "classes": None, "exposure_pub": [1.0]}, "exposure_pub needs exposure"),
        ({"cov": "HC1"}, "cov='HC1'"),
        ({"confidence": 95}, "confidence=95"),
        ({"epsilon": None}, "epsilon=None"),
        ({"classes": None}, "classes=None needs public rows"),
        ({"classes": [0]}, "holds one class"),
        ({"classes": [1, 2]}, "not one of the classes"),
        ({"scale": [1, 2]}, "must be a dict"),
        ({"scale": {"age": Typical(0, 1)}}, "names the column 'age'"),
        ({"scale": {0: (0, 1)}}, r"scale\[0\]=\(0, 1\) must be Typical"),
        ({"scale": {0: 3}}, r"scale\[0\]=3"),
        ({"target_scale": (0, 1)}, "has no targets"),
        ({"encoder": TableEncoder()}, "must be a fitted"),
        ({"sample_weight": [1.0]}, r"sample_weight has shape \(1,\)"),
        ({"sample_weight": -np.ones(N)}, "sample_weight must hold finite numbers"),
        ({"sample_weight": np.zeros(N)}, "sample_weight is zero"),
        ({"sample_weight": np.ones(N), "max_sample_weight": 0}, "max_sample_weight=0"),
        ({"max_sample_weight": 2.0}, "max_sample_weight=2.0.*no sample_weight"),
        ({"sample_weight_pub": [1.0]}, "sample_weight_pub needs sample_weight"),
        ({"sample_weight": np.ones(N), "sample_weight_pub": [1.0]}, "without public rows"),
        ({"sample_weight": np.ones(N), "X_pub": np.eye(3), "y_pub": [0, 1, 1]}, "pass sample_weight_pub"),
        ({"family": "gaussian"}, "has no classes"),
        ({"epsilon": 1e-3}, "too few to learn the spread of the columns"),
        ({"epsilon": 1e-3, "scale": SCALES}, "whose effects the noise would hide"),
    ],
)
def test_bad_input_is_refused_before_the_charge(tmp_path, change, words):
    X, y, _ = binary()
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite")
    ledger.add_dataset("patients", epsilon=10.0, delta=1e-3)
    with pytest.raises((ValueError, TypeError), match=words):
        private_inference(X, y, **{"classes": [0, 1], "ledger": ledger["patients"], **change})
    assert not ledger["patients"].charges()


def test_refusals_name_what_the_budget_can_carry():
    X, y = np.random.default_rng(0).normal(size=(3000, 20)), np.arange(3000) % 2
    with pytest.raises(ValueError, match=r"use at most (\d+) column") as refused:
        private_inference(X, y, classes=[0, 1])
    most = int(str(refused.value).split("at most ")[1].split()[0])
    private_inference(X[:, :most], y, classes=[0, 1])
    with pytest.raises(ValueError, match="would hide"):
        private_inference(X[:, : most + 1], y, classes=[0, 1])


@pytest.mark.parametrize("confidence", [0.05, 95, -1, 1.0, float("nan")])
def test_confidence_is_not_alpha(confidence):
    X, y, _ = binary()
    result = private_inference(X, y, classes=[0, 1])
    for asked in (result.conf_int, result.odds_ratios):
        with pytest.raises(ValueError, match="confidence of 1 - alpha"):
            asked(confidence=confidence)
    with pytest.raises(TypeError):
        result.conf_int(confidence)


def test_contrasts_follow_from_the_covariance():
    X, y, _ = linear()
    result = private_inference(X, y, family="gaussian", epsilon=3.0, random_state=0)
    b, C = result.params.to_numpy(), result.covariance
    table = result.t_test([{"x0": 1, "x1": -2.0}, {"x2": 1.0}], confidence=0.9)
    weights = np.array([0, 1, -2.0, 0])
    error = np.sqrt(weights @ C @ weights)
    np.testing.assert_allclose(
        table.iloc[0, :3], [weights @ b, error, weights @ b / error], rtol=1e-9, atol=0
    )
    np.testing.assert_allclose(
        table["high"] - table["effect"], 1.6448536 * table["std_err"], rtol=1e-6, atol=0
    )
    assert table["p"].iloc[1] == pytest.approx(result.pvalues["x2"], rel=1e-9)
    one = result.wald_test("x2")
    assert one["chi2"] == pytest.approx(result.zvalues["x2"] ** 2, rel=1e-9) and one["df"] == 1
    both = result.wald_test(["x1", "x2"])
    assert both["chi2"] == pytest.approx(b[2:] @ np.linalg.solve(C[2:, 2:], b[2:]), rel=1e-9)
    assert both["p"] == pytest.approx(chi2.sf(both["chi2"], 2), rel=1e-9)
    for contrast, words in (
        ("age", "names 'age'|names of coefficients"),
        ([[1.0, 2.0]], r"array \(q, 4\)"),
        ([{"x0": 1}, {"x0": 2}], "of rank 1"),
    ):
        with pytest.raises(ValueError, match=words):
            result.wald_test(contrast)


@families
def test_predictions_cover_the_true_means(family):
    X, _, _ = rows(n=50)
    inside = 0
    for seed in range(10):
        private, y, slopes, options = of_family(family, seed)
        start = 100 if family == "gaussian" else -0.5
        linear = start + (X - np.array(list(SCALES.values()))[:, 0]) @ slopes
        means = {"logistic": expit, "poisson": np.exp, "gaussian": np.asarray}[family](linear)
        found = private_inference(private, y, epsilon=4.0, random_state=seed, **options).get_prediction(X)
        inside += ((found["low"] < means) & (means < found["high"])).mean()
        assert (found["low"] < found["mean"]).all() and (found["mean"] < found["high"]).all()
    assert inside > 7.5  # of 10, each of the same coefficients


def test_predictions_and_effects_of_several_classes_add_up():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y = np.array(["a", "b", "c"])[(np.c_[np.zeros(N), X] + rng.gumbel(size=(N, 3))).argmax(axis=1)]
    result = private_inference(X, y, epsilon=4.0, classes=["b", "a", "c"], random_state=0)
    assert result.classes == ("b", "a", "c") and result.params.index[1] == ("a", "x0")
    found = result.get_prediction(X[:20])
    np.testing.assert_allclose(found.xs("mean", axis=1, level=1).sum(axis=1), 1, atol=1e-12)
    assert ((found["a"]["low"] < found["a"]["mean"]) & (found["a"]["mean"] < found["a"]["high"])).all()
    effects = result.marginal_effects(X[:500])["effect"]
    np.testing.assert_allclose(effects.groupby(level="term").sum(), 0, atol=1e-9)
    assert effects[("b", "x0")] > 0 > effects[("a", "x0")]


def test_marginal_effects_are_mean_differences():
    X, y, _ = binary()
    X = np.c_[X, X[:, 2] > -3]
    result = private_inference(X, y, classes=[0, 1], epsilon=8.0, random_state=0)
    public = X[:300]
    found = result.marginal_effects(public)
    assert list(found.index) == ["x0", "x1", "x2", "x3"]
    b = result.params.to_numpy()
    p = expit(np.c_[np.ones(300), public] @ b)
    assert found["effect"]["x0"] == pytest.approx(float((p * (1 - p)).mean() * b[1]), rel=1e-5)
    rest = public[:, :3] @ b[1:4] + b[0]
    assert found["effect"]["x3"] == pytest.approx(float((expit(rest + b[4]) - expit(rest)).mean()), abs=1e-12)
    line = private_inference(X, 3 * X[:, 0], family="gaussian", epsilon=8.0, random_state=0)
    np.testing.assert_allclose(
        line.marginal_effects(public)[["effect", "std_err"]].to_numpy(),
        np.c_[line.params, line.bse][1:],
        rtol=1e-5,
        atol=1e-8,
    )


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones((2, 5)), "has shape"),
        (pd.DataFrame({"x0": [1.0]}), "lacks the columns"),
        (np.full((2, 3), np.nan), "finite|NaN|missing"),
    ],
)
def test_rows_for_predictions_have_the_columns_of_the_fit(X, words):
    private, y, _ = binary()
    with pytest.raises(ValueError, match=words):
        private_inference(private, y, classes=[0, 1]).get_prediction(X)


def test_references_are_the_usual_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.uniform(20, 70, N), "city": rng.choice(["Bonn", "Ulm"], N, p=[0.2, 0.8])}
    )
    y = 10 + 2.5 * frame["age"] + 15 * (frame["city"] == "Ulm") + rng.normal(size=N)
    encoder = TableEncoder({"age": (0, 120), "city": ["Bonn", "Ulm"]}).fit(frame)
    options = {"family": "gaussian", "epsilon": 8.0, "encoder": encoder, "random_state": 0}
    public = {"X_pub": frame[:100], "y_pub": y[:100]}
    for more, wanted, place in (
        ({}, "Bonn", 1),
        ({"reference": {"city": "Ulm"}}, "Ulm", 0),
        (public, "Ulm", 0),
    ):
        result = private_inference(frame, y, **options, **more)
        assert result.references == {"city": wanted}
        other = ["Bonn", "Ulm"][place]
        assert result.params[f"city={other}"] == pytest.approx(15 if other == "Ulm" else -15, abs=0.6)
        found = result.get_prediction(frame[:50])
        assert (np.abs(found["mean"] - y[:50]) < 6).all()
    for reference, words in (({"town": "Ulm"}, "'town' is no such"), ({"city": "Rome"}, "'city' is no such")):
        with pytest.raises(ValueError, match=words):
            private_inference(frame, y, **options, reference=reference)
    with pytest.raises(TypeError, match="must be a dict"):
        private_inference(frame, y, **options, reference="Ulm")
    with pytest.raises(ValueError, match="there is no encoder"):
        private_inference(X=frame[["age"]], y=y, family="gaussian", reference={"city": "Ulm"})


def test_a_plot_is_per_spread_unless_per_unit_is_asked_for():
    X, y, _ = binary()
    mpl.use("agg")
    result = private_inference(X, y, classes=[0, 1], epsilon=8.0, scale=SCALES, random_state=0)
    by_spread, by_unit = (result.plot(per=per).lines[1].get_xdata() for per in ("spread", "unit"))
    np.testing.assert_allclose(by_unit, result.params.iloc[1:], atol=1e-12)
    np.testing.assert_allclose(by_spread, by_unit * [10.0, 1e-3, 1.0], atol=1e-12)
    with pytest.raises(ValueError, match="per='sd'"):
        result.plot(per="sd")


def test_truth_values_and_amounts_of_an_encoder_are_in_their_units():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "member": rng.random(20_000) < 0.3,
            "price": [f"${price:,.2f}" for price in rng.uniform(0, 5000, 20_000)],
            "hired": pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 4000, 20_000), "D"),
            "city": rng.choice(["Bonn", "Ulm"], 20_000),
        }
    )
    prices = frame["price"].str.replace("[$,]", "", regex=True).astype(float)
    days = (frame["hired"] - frame["hired"].min()).dt.days
    y = 2 * frame["member"] + prices / 1000 + days / 1000 + rng.normal(0, 1, 20_000)
    kinds = {"member": "boolean", "price": (0, 5000), "hired": "date", "city": ["Bonn", "Ulm"]}
    encoder = TableEncoder(kinds | {"price": "amount"}).fit(frame[:500])
    result = private_inference(
        frame, y, family="gaussian", encoder=encoder, epsilon=4.0, target_scale=(3, 3), random_state=0
    )
    assert result.params["member"] == pytest.approx(2, abs=0.15)
    assert result.params["price"] == pytest.approx(1e-3, rel=0.05)
    assert result.params["hired"] == pytest.approx(1e-3, rel=0.05)
    mpl.use("agg")
    for per, day in (("spread", "hired, per 1"), ("unit", "hired, per 1 days")):
        axes = result.plot(per=per)
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert any(label.startswith(day) and label.endswith(" days") for label in labels)
        assert {"member", "city=Ulm"} <= set(labels)
        assert "categories against city=Bonn" in axes.get_xlabel()
        drawn = dict(zip(labels, axes.lines[1].get_xdata(), strict=True))
        assert drawn["member"] == result.params["member"]


def test_an_intercept_that_shares_what_noise_hides_has_no_interval():
    """Two dummies nearly add up to 1, and a column far from 0 makes most of the intercept."""
    rng = np.random.default_rng(0)
    first = rng.random(N) < 0.4
    second = ~first & (rng.random(N) < 0.995)
    X = np.c_[rng.normal(30, 3, N), first, second]
    y = (rng.random(N) < expit(0.1 * (X[:, 0] - 30))).astype(int)
    scale = {0: Typical(30.0, 3.0), 1: Typical(0.4, 0.5), 2: Typical(0.6, 0.5)}
    result = private_inference(X, y, classes=[0, 1], epsilon=2.0, scale=scale, random_state=0)
    assert list(result.identified) == [False, True, False, False]
