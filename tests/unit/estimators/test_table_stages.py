"""What a fit to a table learns before it trains: no option is refused after the charge."""

import numpy as np
import pytest
import scipy.sparse as sp

from skmixdp import MixedDPLogisticRegression, MixedDPRidge, RowMapping
from skmixdp.privacy import PrivacyLedger
from tests.private_names import procedure_module

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N, D = 2500, 12
rng = np.random.default_rng(0)
ALIKE = rng.normal(size=(N, D))
UNLIKE = ALIKE * np.where(np.arange(D) < 2, 1e3, 1.0) + np.where(np.arange(D) < 1, 5e3, 0.0)
TABLES = {"alike": ALIKE, "unlike": UNLIKE, "few": UNLIKE[:, :3]}
Y = (ALIKE[:, 2] + ALIKE[:, 0] > 0).astype(int)
TARGETS = ALIKE[:, 0] + 0.5 * ALIKE[:, 2]
HELD = {"dense": np.asarray, "sparse": sp.csr_array}


def head_of(kind, n_public, **parameters):
    terms = {"epsilon": 3.0, "delta": 1e-5, "random_state": 0, **parameters}
    if kind == "ridge":
        return MixedDPRidge(**terms, target_scale=None if n_public else 1.0)
    return MixedDPLogisticRegression(classes=[0, 1], **terms)


def fit(head, kind, table, n_public, held="dense", other_labels=False):
    X, y = TABLES[table], TARGETS if kind == "ridge" else Y
    y_pub = y[:n_public] if not other_labels else (1 - y[:n_public])
    return head.fit(HELD[held](X[n_public:]), y[n_public:], *((X[:n_public], y_pub) if n_public else ()))


def spent_on_map(shares):
    """What maps cost, those that were left out later too."""
    names = ("columns", "second moment", "mean", "directions", "length of the rows")
    return sum(share for name, share in shares.items() if name.removeprefix("unused ") in names)


@pytest.mark.covering(
    "table public geometry",
    "table public whiten",
    "table row_norm whiten",
    "held geometry public",
    "held row_norm",
    "kind geometry whiten",
    "other_labels whiten public",
)
@pytest.mark.parametrize("kind", ["classes", "ridge"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("public", [0, 1, 6, 60])
@pytest.mark.parametrize("geometry", ["auto", True, False])
@pytest.mark.parametrize("whiten", ["auto", True, False])
@pytest.mark.parametrize("row_norm", ["auto", "unit", "clip"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("other_labels", [False, True])
def test_what_is_refused_is_refused_before_the_charge(
    monkeypatch, kind, table, public, geometry, whiten, row_norm, center, held, other_labels
):
    assumed, planned = [0.0], procedure_module.planned

    def ahead(way):
        assumed.append(spent_on_map({payment.line: payment.price for payment in way.payments}))
        return planned(way)

    monkeypatch.setattr(procedure_module, "planned", ahead)
    ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=4.0, delta=1e-4)
    options = {"rows": RowMapping(geometry=geometry, whiten=whiten, norm=row_norm, center=center)}
    head = head_of(kind, public, ledger=ledger, **options)
    try:
        fit(head, kind, table, public, held, other_labels)
    except ValueError:
        assert not ledger.charges()
    else:
        assert len(ledger.charges()) == 1 and np.all(np.isfinite(head.coef_))
        # The smallest budget that may be left was looked at before the charge.
        assert spent_on_map(dict(head.privacy_.shares)) <= max(assumed) + 1e-12


@pytest.mark.parametrize("public", [0, 6, 60])
def test_sparse_rows_learn_their_geometry_like_dense_ones(public):
    """Columns are standardised without a centre, since rows of unit length are centred after it."""
    # With this seed, no spread is near the edge of a bin of the noisy histograms.
    terms = {"rows": RowMapping(geometry=True), "random_state": 5}
    dense, sparse = (
        fit(head_of("classes", public, **terms), "classes", "unlike", public, held) for held in HELD
    )
    assert [name for name, _ in dense.privacy_.shares] == [name for name, _ in sparse.privacy_.shares]
    # What is stated of the rounding of sums differs by up to 1%, and so does the noise.
    one, other = (head.coef_ * UNLIKE.std(axis=0) for head in (dense, sparse))
    np.testing.assert_allclose(one, other, rtol=0, atol=0.01 * np.abs(one).max())


@pytest.mark.parametrize("table", TABLES)
def test_whitening_without_public_rows_learns_the_geometry_of_tables_too(table):
    head = fit(head_of("classes", 0, rows=RowMapping(whiten=True)), "classes", table, 0)
    assert {"columns", "mean", "directions"} <= dict(head.privacy_.shares).keys()


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["classes", "ridge"])
@pytest.mark.parametrize("public", [0, 6, 60])
def test_the_unit_of_columns_makes_no_difference(kind, public):
    """By powers of two, numbers and bins are the same but for exponents, and for the noise in the bins."""
    unit = 2.0 ** rng.integers(-30, 30, size=D)
    y, outputs = TARGETS if kind == "ridge" else Y, []
    for X in (UNLIKE, UNLIKE * unit):
        known = (X[:public], y[:public]) if public else ()
        head = head_of(kind, public).fit(X[public:], y[public:], *known)
        outputs.append(head.predict(X) if kind == "ridge" else head.decision_function(X))
    one, other = outputs
    # With enough public rows, no noise decides on columns, and single precision is all that differs.
    assert np.std(one - other) <= (1e-4 if public == 60 else 0.2) * np.std(one)


@pytest.mark.covering
@pytest.mark.parametrize("row_norm", ["auto", "unit", "clip"])
@pytest.mark.parametrize("n_public", [0, 5])
def test_no_sparse_row_is_refused_after_the_charge(tmp_path, row_norm, n_public):
    """Noisy columns are asked first, and the squares of this row's entries overflow."""
    generator = np.random.default_rng(0)
    y = np.arange(400) % 3
    X = generator.normal(size=(400, 12)) + 2 * np.eye(3, 12)[y]
    public = {"X_pub": X[:n_public], "y_pub": y[:n_public]} if n_public else {}
    rows = X.copy()
    rows[7] = np.array([1, -1] * 6) * np.finfo(np.float64).max
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite").add_dataset("rows", epsilon=100.0, delta=1e-3)
    head = MixedDPLogisticRegression(
        epsilon=8.0, delta=1e-4, classes=range(3), rows=RowMapping(norm=row_norm), ledger=ledger
    )
    try:
        head.fit(sp.csr_array(rows), y, **public)
        refused = False
    except ValueError:
        refused = True
    assert refused != bool(ledger.charges())
