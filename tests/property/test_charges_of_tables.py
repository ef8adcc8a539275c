"""All releases of a fit to a table add up to its budget, also where what was learned changes what follows."""

import math

import numpy as np
import pytest

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.estimators import fit_many
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import mu_of_budget
from tests.noise import watch
from tests.property.test_charges_add_up import (
    RELATIONS,
    ROUNDED,
    TERMS,
    assert_adds_up,
    assert_adds_up_to,
    spent,
    terms_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N, D, K = 6000, 12, 3
RNG = np.random.default_rng(0)
Y = np.minimum(RNG.geometric(0.5, N) - 1, K - 1)
#: Columns alike, which are not standardised; and two that are longer than the others, which are.
ALIKE = RNG.normal(size=(K, D))[Y] + RNG.normal(size=(N, D))
UNLIKE = ALIKE * np.where(np.arange(D) < 2, 1e4, 1.0) + np.where(np.arange(D) < 1, 5e4, 0.0)
#: Three columns far from 0, at which more histograms look closer.
FAR = ALIKE + np.where(np.arange(D) < 3, 1e6, 0.0)
TABLES = {"alike": ALIKE, "unlike": UNLIKE, "few": UNLIKE[:, :5], "far": FAR}
N_PUBLIC = {"none": 0, "two": 2 * K, "some": 60}
#: Where the columns follow from public rows, or from none.
KNOWN = {"some"}


def fitted(estimator, name, public, left_out=False):
    X, y, n = TABLES[name], Y, N_PUBLIC[public]
    if isinstance(estimator, MixedDPRidge):
        y = ALIKE[:, :2] @ [[1.0, 0.5], [0.0, 1.0]]
    y_pub = y[:n] if not left_out else (-y[:n] if y.ndim == 2 else (y[:n] + 1) % K)
    return estimator.fit(X[n:], y[n:], *((X[:n], y_pub) if n else ()))


def names_of(estimator):
    return {name for name, _ in estimator.privacy_.shares}


@pytest.mark.covering("table public", "public row_norm", "public relation")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("public", N_PUBLIC)
@pytest.mark.parametrize("geometry", ["auto", True, False])
@pytest.mark.parametrize("row_norm", ["auto", "unit", "clip", None])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
def test_stages_of_a_classifier(monkeypatch, table, public, geometry, row_norm, class_weight, relation):
    terms, (noise, neighboring) = terms_of(relation), relation
    if geometry is True and row_norm in ("clip", None):
        geometry = "auto"
    if row_norm is None:
        terms["learning_rate"] = 1e-9
    head = MixedDPLogisticRegression(
        classes=range(K),
        rows=RowMapping(norm=row_norm, geometry=geometry),
        class_weight=class_weight,
        **terms,
    )
    log = watch(monkeypatch)
    fitted(head, table, public)
    assert_adds_up(log, head.privacy_)
    names = names_of(head)
    assert ("columns" in names) == (public not in KNOWN and noise == "float" and row_norm is not None)
    assert "temperature" in names
    assert ("class counts" in names) == (class_weight is not None or not head.privacy_.n_public)
    scaled = table != "alike" and ("columns" in names or public in KNOWN) and row_norm != "unit"
    scaled &= geometry is not True
    moments = scaled and row_norm in ("auto", "clip")
    if neighboring != "replace_one" and row_norm is not None and noise == "float":  # else it may be too noisy
        assert ("second moment" in names) == moments
    assert not ({"mean", "directions"} & names and scaled)


@pytest.mark.covering
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("public", N_PUBLIC)
@pytest.mark.parametrize("scale", [2.0, None])
@pytest.mark.parametrize("relation", RELATIONS, ids="-".join)
def test_stages_of_a_regression(monkeypatch, table, public, scale, relation):
    estimator, noise = MixedDPRidge(**terms_of(relation), target_scale=scale), relation[0]
    log = watch(monkeypatch)
    head = fitted(estimator, table, public)
    assert_adds_up(log, head.privacy_)
    assert ("scale of the targets" in names_of(head)) == (public == "none" and scale is None)
    assert ("columns" in names_of(head)) == (public not in KNOWN and noise == "float")
    assert "temperature" not in names_of(head)


@pytest.mark.parametrize("table", TABLES)
def test_columns_that_are_not_used_are_paid_for_and_geometry_follows(monkeypatch, table):
    """Where all columns are alike, their histograms tell that they need no scale."""
    log = watch(monkeypatch)
    head = fitted(MixedDPLogisticRegression(**TERMS, classes=range(K), random_state=0), table, "none")
    assert_adds_up(log, head.privacy_)
    after = {"mean", "directions"} if table == "alike" else {"second moment"}
    names = names_of(head) - {"strength of the adjustment"}
    assert names == {"class counts", "columns", "training", "temperature"} | after


@pytest.mark.covering
@pytest.mark.parametrize("estimator", [MixedDPLogisticRegression, MixedDPRidge])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("public", ["two", "some"])
def test_what_a_start_that_is_left_out_has_learned_is_paid_for(monkeypatch, estimator, table, public):
    """Both maps are: that which was learned with the public rows, and the one that is learned after them."""
    log = watch(monkeypatch)
    classes = {} if estimator is MixedDPRidge else {"classes": range(K)}
    head = fitted(estimator(**TERMS, **classes), table, public, left_out=True)
    assert_adds_up(log, head.privacy_)
    if head.privacy_.n_public == 0:
        unused = {name for name in names_of(head) if name.startswith("unused")}
        assert public == "some" or "unused columns" in unused


@pytest.mark.parametrize("table", TABLES)
def test_folds_whose_columns_are_learned_together(monkeypatch, table):
    folds = [np.flatnonzero(np.arange(N) % 2 == part) for part in (0, 1)]
    heads = [MixedDPLogisticRegression(**TERMS, classes=range(K)) for _ in folds]
    log = watch(monkeypatch)
    fit_many(heads, TABLES[table], Y, rows=folds)
    assert all("columns" in names_of(head) for head in heads)
    assert_adds_up_to(log, math.hypot(*(head.privacy_.mu for head in heads)))


@pytest.mark.parametrize("relation", RELATIONS[:2], ids="-".join)
@pytest.mark.parametrize("epsilon", [0.003, 0.15, 1.0])
def test_a_scaler_without_bounds(monkeypatch, epsilon, relation):
    """The less budget, the fewer histograms: where they are one, it has all of it."""
    log = watch(monkeypatch)
    scaler = NoisyScaler(epsilon, 1e-5, neighboring=relation[1], random_state=0).fit(UNLIKE)
    cost, limit = spent(log, relation[1]), scaler.privacy_.mu
    assert cost <= limit * (1 + ROUNDED)
    assert limit <= mu_of_budget(epsilon, 1e-5) * (1 + ROUNDED)
    # If nothing is found in the first of three, the others are not released.
    assert cost >= limit * (1 - 1e-5) or (len(log) == 1 and not (scaler.scale_ != 1).any())
    assert len(log) == (1 if epsilon == 0.003 else 3)


@pytest.mark.parametrize("table", ["few", "far"])
def test_histograms_that_look_closer_cost_what_is_stated(monkeypatch, table):
    """Each adds one of each row to each of its columns, and to no other."""
    log = watch(monkeypatch)
    head = fitted(MixedDPLogisticRegression(**TERMS, classes=range(K)), table, "none")
    closer = [each for each in log if each.exact.size == 3 * 63]
    assert (len(closer) > 1) == (table == "far")
    for each in closer:
        assert np.array_equal(each.exact.reshape(3, 63).sum(axis=1), np.full(3, N))
        assert math.sqrt(3) <= each.sensitivity < 1.02 * math.sqrt(3)  # with rounding
    assert_adds_up(log, head.privacy_)
    parts = dict(head.privacy_.shares)
    assert (parts["columns"] > 0.011) == (table == "far")
