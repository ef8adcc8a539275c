"""A resumed fit releases nothing twice, is charged once, and gives the head of an uninterrupted one."""

import errno
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from skmixdp import (
    AdditiveDPPoissonRegressor,
    AdditiveDPRegressor,
    MixedDPLogisticRegression,
    MixedDPPoissonRegressor,
    MixedDPRidge,
    RowMapping,
    ZerothOrderDPModuleClassifier,
    fit_many,
    resumable,
)
from skmixdp.algorithms import DPZero, ModelMix, NoisyGD
from skmixdp.exceptions import BudgetExceededError
from skmixdp.inspection import StepHistory
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.privacy import NoiseSource, PrivacyLedger, event_to_json
from tests.private_names import GaussianMechanism, _base, _resuming, _sql, recorded_releases, transaction

DELTA = 1e-4
rng = np.random.default_rng(0)
N, D = 400, 12
CENTRES = rng.normal(size=(3, D)) * 1.5
y = rng.integers(0, 3, N)
X = CENTRES[y] + rng.normal(size=(N, D))
y_pub = np.repeat(np.arange(3), 8)
X_pub = CENTRES[y_pub] + rng.normal(size=(24, D))
PUBLIC = {"X_pub": X_pub, "y_pub": y_pub}
LABELS = np.stack([y > 0, X[:, 0] > 0], axis=1).astype(int)
RARE = (np.arange(N) % 20 == 0).astype(int)
TARGET = X @ rng.normal(size=D) + y


def _head(**parameters):
    return MixedDPLogisticRegression(classes=[0, 1, 2], **parameters)


#: Fits of all stages and algorithms: estimator, rows, labels and further arguments.
FITS = {
    "default": (MixedDPLogisticRegression(), X, y, PUBLIC),
    "no public rows": (_head(), X, y, {}),
    "directions": (_head(rows=RowMapping(geometry=True), epsilon=5.0), X, y, {}),
    "columns": (_head(scale=True, rows=RowMapping(geometry=False)), X * 100, y, {}),
    "balanced": (MixedDPLogisticRegression(class_weight="balanced"), X, y, PUBLIC),
    "noisy-gd": (MixedDPLogisticRegression("noisy-gd"), X, y, PUBLIC),
    "gep": (MixedDPLogisticRegression("gep"), X, y, PUBLIC),
    "dope": (MixedDPLogisticRegression("dope-sgd"), X, y, PUBLIC),
    "pda-dpmd": (MixedDPLogisticRegression("pda-dpmd"), X, y, PUBLIC),
    "sparse": (MixedDPLogisticRegression("adamix"), sparse.csr_matrix(X), y, PUBLIC),
    "persons-rows": (MixedDPLogisticRegression(), X, y, {**PUBLIC, "groups": np.arange(N) // 4}),
    "labels": (MixedDPLogisticRegression(), X, LABELS, {}),
    "ridge": (MixedDPRidge(target_scale=10.0), X, TARGET, {}),
    "additive": (AdditiveDPRegressor(target_scale=10.0, epsilon=8.0), X[:, :3], TARGET, {}),
    "rates": (MixedDPPoissonRegressor(epsilon=8.0), X, y, {}),
    "curves of counts": (
        AdditiveDPPoissonRegressor(epsilon=3.0),
        np.tile(X[:, :3], (5, 1)),
        np.tile(y, 5),
        {},
    ),
    "rare class": (MixedDPLogisticRegression(classes=[0, 1], epsilon=8.0), X, RARE, {}),
    "skewed classes": (MixedDPLogisticRegression(epsilon=4.0), X, np.where(y == 2, y, 0), PUBLIC),
    "ridge with public rows": (MixedDPRidge(), X, TARGET, {"X_pub": X[:40], "y_pub": TARGET[:40]}),
}


class Cut(KeyboardInterrupt):
    """An interruption of a fit."""


@pytest.fixture
def people(tmp_path, request):
    unit = "person" if "persons-rows" in request.node.name else "row"
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite")
    return ledger.add_dataset("people", epsilon=30.0, delta=DELTA, unit=unit)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture
def silent(monkeypatch):
    """No noise, and the same start of the power method, so that fits can be compared."""
    monkeypatch.setattr(
        NoiseSource, "normal", lambda self, shape: np.random.default_rng(0).normal(size=shape)
    )
    monkeypatch.setattr(NoiseSource, "add_noise", lambda self, array, scale, grid: array)


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupts the release of a number, before its noise is drawn or, if ``lost``, after."""
    original = GaussianMechanism.add_noise

    def at(number, *, lost=False, error=Cut):
        calls = []

        def add_noise(self, *arguments):
            calls.append(1)
            if len(calls) == number and not lost:
                raise error
            noisy = original(self, *arguments)
            if len(calls) == number:
                raise error
            return noisy

        monkeypatch.setattr(GaussianMechanism, "add_noise", add_noise)
        return calls

    return at


def fitted(head, rows, labels, arguments, ledger):
    return type(head)(**{**head.get_params(deep=False), "ledger": ledger, "delta": DELTA}).fit(
        rows, labels, **arguments
    )


def execute(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def change_charge(people, column, value):
    """Change the only charge, with a checksum that matches."""
    execute(people.ledger.path, f"UPDATE charges SET {column} = ?", value)
    people.ledger._store.transact(partial(_sql._seal, table="charges", column="id", value=1), write=True)


def count(fit, ledger):
    with recorded_releases() as released:
        head = fitted(*fit, ledger)
    return head, len(released)


def refuse_to_resume(path, fit, ledger, match, error=ValueError):
    """A fit with a checkpoint ends with an error before it releases anything."""
    with recorded_releases() as released, pytest.raises(error, match=match), resumable(path):
        fitted(*fit, ledger)
    assert released == []


# -- the same head ---------------------------------------------------------------------------


def interrupted():
    raise Cut


def in_passes(monkeypatch, number):
    """Interrupts the pass over the rows with this number."""
    original, calls = GaussianMechanism.admit, []

    def admit(self, *arguments):
        calls.append(1)
        if len(calls) == number:
            raise Cut
        return original(self, *arguments)

    monkeypatch.setattr(GaussianMechanism, "admit", admit)
    return calls


@pytest.mark.parametrize("name", FITS)
def test_a_resumed_fit_gives_the_head_of_one_that_was_not_interrupted(
    name, people, path, silent, monkeypatch
):
    whole, n_released = count(FITS[name], None)
    # The last release of these has two parts, so what is lost between them is not drawn again.
    numbers = {2, n_released // 2, n_released - (name in ("additive", "skewed classes"))}
    for number in numbers:
        with monkeypatch.context() as patched:
            in_passes(patched, number)
            with pytest.raises(Cut), resumable(path):
                fitted(*FITS[name], people)
        assert path.exists()
        with monkeypatch.context() as patched:
            passes = in_passes(patched, None)
            with recorded_releases() as released, resumable(path):
                head = fitted(*FITS[name], people)
                assert path.exists()
        assert not path.exists()
        assert len(passes) == len(released) == n_released - number + 1
        np.testing.assert_allclose(head.coef_, whole.coef_, atol=1e-4)
        np.testing.assert_allclose(head.intercept_, whole.intercept_, atol=1e-4)
        assert (head.n_iter_, head.privacy_.shares) == (whole.n_iter_, whole.privacy_.shares)
        assert people.charges()[-1].outcome == "finished"
        assert head.privacy_.dataset_spent == people.charges()[-1].spent
    assert len(people.charges()) == len(numbers)


@pytest.mark.parametrize(("name", "place"), [("additive", 0), ("rare class", 1), ("skewed classes", 0)])
def test_a_fit_keeps_its_head_if_the_second_part_of_a_release_is_lost(
    name, place, people, path, silent, monkeypatch
):
    """The last release of a regression, of a rare class but for one, and of shares of classes."""
    whole, n_released = count(FITS[name], None)
    with monkeypatch.context() as patched:
        in_passes(patched, n_released - place)
        with pytest.raises(Cut), resumable(path):
            fitted(*FITS[name], people)
    try:
        with recorded_releases() as released, resumable(path):
            head = fitted(*FITS[name], people)
    except RuntimeError as error:
        pytest.fail(f"the whole fit is lost: {error}")
    assert len(released) == place
    if name == "skewed classes":
        assert hasattr(whole, "class_shares_") and not hasattr(head, "class_shares_")
    else:
        assert not np.allclose(head.coef_, whole.coef_, atol=1e-4)
    assert head.privacy_.shares == whole.privacy_.shares and people.charges()[-1].outcome == "finished"


def test_a_fit_may_be_interrupted_in_every_pass(people, path, silent, monkeypatch):
    fit = FITS["no public rows"]
    whole, n_released = count(fit, None)
    for _ in range(n_released):
        with monkeypatch.context() as patched:
            in_passes(patched, 2)
            with pytest.raises(Cut), resumable(path):
                _ = fitted(*fit, people), interrupted()  # after the fit, the last time
    with resumable(path):
        head = fitted(*fit, people)
    np.testing.assert_allclose(head.coef_, whole.coef_, atol=1e-4)
    (charge,) = people.charges()
    assert people._last_step(charge) == n_released


@pytest.mark.parametrize("noise", ["float", "discrete"])
def test_what_was_released_with_noise_is_used_again(noise, people, path, monkeypatch):
    if noise == "discrete":
        pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    head = MixedDPLogisticRegression("adamix", noise=noise, batch_size=40 if noise == "float" else None)
    fit = head, X, y, PUBLIC
    with monkeypatch.context() as patched:
        in_passes(patched, 4)
        with recorded_releases() as first, pytest.raises(Cut), resumable(path):
            fitted(*fit, people)
    kept = [_resuming._from_bytes(row[0]) for row in execute(path, "SELECT numbers FROM released")]
    assert len(kept) == len(first) == 3
    for one, other in zip(kept, first, strict=True):
        assert one.stated == other.query.releases
        for found, wanted in zip(one.arrays, other.arrays, strict=True):
            np.testing.assert_array_equal(found, wanted)
    with recorded_releases() as second, resumable(path):
        done = fitted(*fit, people)
    assert len(second) == done.n_iter_ - 3
    np.testing.assert_array_equal(second[0].query.points.shape, first[0].query.points.shape)


# -- what is lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 3])
def test_a_step_that_was_drawn_and_not_kept_is_left_out(times, people, path, interrupt, monkeypatch):
    fit = MixedDPLogisticRegression("adamix", n_steps=10), X, y, PUBLIC
    for _ in range(times):
        with monkeypatch.context():
            interrupt(2, lost=True)
            with pytest.raises(Cut), resumable(path):
                fitted(*fit, people)
        monkeypatch.undo()
    (charge,) = people.charges()
    assert people._last_step(charge) == 2 * times
    with recorded_releases() as released, resumable(path):
        head = fitted(*fit, people)
    assert head.n_iter_ == 10 - times and len(released) == 10 - 2 * times
    assert people._last_step(charge) == 10 and len(people.charges()) == 1


def test_a_number_that_a_fit_cannot_do_without_ends_it(people, path, interrupt, monkeypatch):
    fit = FITS["directions"]
    interrupt(2, lost=True)
    with pytest.raises(Cut), resumable(path):
        fitted(*fit, people)
    monkeypatch.undo()
    for _ in range(2):
        refuse_to_resume(path, fit, people, r"cannot do without.*remove .* to begin a new fit", RuntimeError)
    assert len(people.charges()) == 1 and people.charges()[0].outcome == "failed: LostReleaseError"


def test_an_error_of_a_pass_loses_no_step(people, path, silent, interrupt, monkeypatch):
    whole, _ = count(FITS["default"], None)
    with monkeypatch.context() as patched:

        def fails(*arguments):
            raise OSError(errno.EIO, "the disk is gone")

        patched.setattr(GaussianMechanism, "admit", fails)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)), resumable(path):
            fitted(*FITS["default"], people)
    with resumable(path):
        head = fitted(*FITS["default"], people)
    np.testing.assert_allclose(head.coef_, whole.coef_, atol=1e-4)


def test_callbacks_see_a_head_after_its_numbers_are_kept(people, path):
    seen = []

    class Reader(StepHistory):
        def on_fit_task_end(self, estimator, context, *, metadata):
            if "step" in (metadata or {}):
                with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
                    seen.append(connection.execute("SELECT max(step) FROM released").fetchone()[0])

    pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    head = MixedDPLogisticRegression("adamix", n_steps=5, ledger=people, delta=DELTA).set_callbacks(Reader())
    with resumable(path):
        head.fit(X, y, **PUBLIC)
    assert seen == [1, 2, 3, 4, 5]


# -- nothing is released twice ---------------------------------------------------------------


def begun(people, path, monkeypatch, n_passes=4, fit=FITS["noisy-gd"]):
    with monkeypatch.context() as patched:
        in_passes(patched, n_passes)
        with pytest.raises(Cut), resumable(path):
            fitted(*fit, people)
    return fit


def test_a_copy_of_a_checkpoint_serves_no_second_time(people, path, tmp_path, monkeypatch):
    fit = begun(people, path, monkeypatch)
    copied = shutil.copy(path, tmp_path / "copy")
    with resumable(path):
        fitted(*fit, people)
    refuse_to_resume(
        copied, fit, people, r"3 steps of a charge whose fit went on to step \d+; pass its latest"
    )


def test_two_fits_from_copies_release_each_step_once(people, path, tmp_path, monkeypatch):
    fit = begun(people, path, monkeypatch)
    copied, overtaken = shutil.copy(path, tmp_path / "copy"), []
    original = GaussianMechanism.add_noise

    def add_noise(self, *arguments):
        if not overtaken:  # the fit from the copy runs to its end, while this one computes its sums
            overtaken.append(True)
            token = _base.current_checkpoint.set(None)
            with resumable(copied):
                fitted(*fit, people)
            _base.current_checkpoint.reset(token)
        return original(self, *arguments)

    monkeypatch.setattr(GaussianMechanism, "add_noise", add_noise)
    with (
        recorded_releases() as released,
        pytest.raises(RuntimeError, match="is not the next one"),
        resumable(path),
    ):
        fitted(*fit, people)
    (charge,) = people.charges()
    assert len(released) + 3 == people._last_step(charge)


def test_a_checkpoint_is_used_by_one_process(people, path, monkeypatch):
    fit = begun(people, path, monkeypatch)
    with closing(_resuming.Checkpoint(path)) as other:
        other._open()
        refuse_to_resume(path, fit, people, "another process is at the fit", RuntimeError)
    with resumable(path):
        fitted(*fit, people)
    assert len(people.charges()) == 1


def test_a_ledger_of_an_earlier_copy_is_refused(people, path, tmp_path, monkeypatch):
    empty = PrivacyLedger(tmp_path / "other.sqlite").add_dataset("people", epsilon=30.0, delta=DELTA)
    fit = begun(people, path, monkeypatch)
    refuse_to_resume(path, fit, empty, "does not hold the charge")
    change_charge(people, "steps", 1)
    refuse_to_resume(path, fit, people, r"does not hold the charge .* with all its steps")
    assert empty.charges() == []


@pytest.mark.parametrize("when", ["before the charge", "after the charge"])
def test_a_fit_that_is_stopped_at_its_charge_is_charged_once(when, people, path, silent, monkeypatch):
    fit = MixedDPLogisticRegression("noisy-gd"), X, y, PUBLIC
    charge = transaction.charge_together

    def stopped(requests, *arguments):
        if when == "after the charge":
            charge(requests, *arguments)
        raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(transaction, "charge_together", stopped)
        with pytest.raises(Cut), resumable(path):
            fitted(*fit, people)
    assert len(people.charges()) == path.exists() == (when == "after the charge")
    with recorded_releases() as released, resumable(path):
        resumed = fitted(*fit, people)
    assert len(people.charges()) == 1 and not path.exists()
    again, n_released = count(fit, people)
    assert np.array_equal(resumed.coef_, again.coef_) and len(released) == n_released
    assert [charge.outcome for charge in people.charges()] == ["finished"] * 2


def test_a_checkpoint_stays_if_the_ledger_cannot_be_read(people, path, monkeypatch):
    charge = transaction.charge_together

    def stopped(requests, *arguments):
        charge(requests, *arguments)
        people.ledger.path.rename(people.ledger.path.with_suffix(".away"))
        raise Cut

    with monkeypatch.context() as patched:
        patched.setattr(transaction, "charge_together", stopped)
        with pytest.raises(Cut), resumable(path):
            fitted(*FITS["default"], people)
    assert path.exists()
    people.ledger.path.with_suffix(".away").rename(people.ledger.path)
    with resumable(path):
        fitted(*FITS["default"], people)
    assert len(people.charges()) == 1


@pytest.mark.parametrize("what", ["noise", "event"])
def test_numbers_of_another_charge_are_refused(what, people, path, monkeypatch):
    """A file or a ledger that was changed, or is an earlier copy in which another fit has this number."""
    fit = begun(people, path, monkeypatch)
    if what == "noise":
        execute(path, "UPDATE released SET noise_multiplier = 1.01 * noise_multiplier")
    else:
        event = event_to_json(replace(people.charges()[0].event, noise_multiplier=90.0))
        change_charge(people, "event", event)
    match = {"noise": "holds numbers with other noise", "event": "does not hold the charge"}[what]
    refuse_to_resume(path, fit, people, match)


# -- refusals --------------------------------------------------------------------------------

CHANGES = {
    "a parameter": ({"l2": 0.5}, {}),
    "an algorithm": ({"algorithm": "adamix"}, {}),
    "the budget": ({"epsilon": 2.0}, {}),
    "public rows": ({}, {"X_pub": X_pub + 1e-9}),
    "public labels": ({}, {"y_pub": y_pub[::-1].copy()}),
    "unlabelled rows": ({}, {"X_unlabeled": X_pub}),
    "the number of rows": ({}, {"rows": slice(0, -1)}),
    "persons": ({}, {"groups": np.arange(N)}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_fit_is_refused(what, people, path, monkeypatch):
    head, rows, labels, public = begun(people, path, monkeypatch)
    parameters, arguments = CHANGES[what]
    changed = {**public, **arguments}
    chosen = changed.pop("rows", slice(None))
    other = type(head)(**{**head.get_params(deep=False), **parameters})
    another = other, rows[chosen], labels[chosen], changed
    refuse_to_resume(
        path, another, people, "with other parameters, other public rows or another number of private"
    )
    assert len(people.charges()) == 1
    with resumable(path):
        fitted(head, rows, labels, public, people)


def test_what_cannot_be_resumed_is_refused_before_the_charge(people, path):
    torch = pytest.importorskip("torch")
    linear = "resumable\\(\\) is for linear heads"
    refused = [
        (MixedDPLogisticRegression(ModelMix(NoisyGD(momentum=0.0))), linear),
        (MixedDPLogisticRegression(DPZero()), linear),
        (MixedDPLogisticRegression(record_per_instance=True), linear),
        (ZerothOrderDPModuleClassifier(torch.nn.Linear(D, 3)), linear),
    ]
    for head, message in refused:
        with pytest.raises(ValueError, match=message), resumable(path):
            fitted(head, X, y, PUBLIC, people)
        assert not path.exists()
    with pytest.warns(UserWarning, match="seed|random_state"), pytest.raises(ValueError, match=linear):  # noqa: SIM117
        with resumable(path):
            fitted(MixedDPLogisticRegression(random_state=0), X, y, PUBLIC, people)
    with pytest.raises(ValueError, match=r"needs ledger= .now None."), resumable(path):
        fitted(MixedDPLogisticRegression(), X, y, PUBLIC, None)
    heads = [MixedDPLogisticRegression(ledger=people) for _ in range(2)]
    with pytest.raises(ValueError, match="is for one fit, and this call has 2"), resumable(path):
        fit_many(heads, X, y, **PUBLIC)
    search = PrivateSearchCV(MixedDPLogisticRegression(), {"l2": [0.1, 1.0]}, ledger=people, delta=DELTA)
    with pytest.raises(ValueError, match="resumable"), resumable(path):
        search.fit(X, y, **PUBLIC)
    with pytest.raises(ValueError, match="is within another one"), resumable(path), resumable(path):
        pass
    assert not path.exists()
    assert len(people.charges()) <= 1  # that of the search, which releases nothing


def test_a_second_fit_in_a_block_is_refused(people, path):
    with pytest.raises(ValueError, match="this is the second"), resumable(path):
        _ = [fitted(*FITS["default"], people) for _ in range(2)]
    assert len(people.charges()) == 1
    with resumable(path):  # what the first has released is there
        fitted(*FITS["default"], people)
    assert len(people.charges()) == 1


@pytest.mark.parametrize("bad", [3, "", None])
def test_what_is_no_path_is_refused(bad):
    with pytest.raises((ValueError, TypeError), match=r"path=.* must be a path of a file"), resumable(bad):
        pass


def test_a_block_without_a_fit_warns(path):
    with pytest.warns(UserWarning, match="no fit has run within"), resumable(path):
        pass


def test_an_exceeded_budget_leaves_no_checkpoint(tmp_path, path):
    small = PrivacyLedger(tmp_path / "small.sqlite").add_dataset("people", epsilon=0.5, delta=DELTA)
    with pytest.raises(BudgetExceededError), resumable(path):
        fitted(*FITS["default"], small)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"text", b"SQLite format 3\0" + bytes(200), None])
def test_other_files_are_refused_and_stay(content, people, path, tmp_path):
    if content is None:
        path = tmp_path / "ledger.sqlite"
    else:
        path.write_bytes(content)
    errors = (ValueError, RuntimeError)
    refuse_to_resume(path, FITS["default"], people, r"no checkpoint of a fit|another process", errors)
    assert content is None or path.read_bytes() == content
    assert people.charges() == []


def test_damaged_numbers_are_refused(people, path, monkeypatch):
    fit = begun(people, path, monkeypatch)
    execute(path, "UPDATE released SET numbers = x'00'")
    refuse_to_resume(path, fit, people, "is damaged")


def test_a_folder_that_is_missing_is_named(people, tmp_path):
    folder = tmp_path / "no" / "file"
    refuse_to_resume(folder, FITS["default"], people, r"cannot be used .* check its folder", OSError)
    assert people.charges() == []


def test_parameters_that_have_no_pickle_are_refused(people, path):
    class Local:
        def __reduce__(self):
            raise TypeError("no pickle")

        def at(self, *_):
            raise AssertionError

    head = MixedDPLogisticRegression("noisy-gd")
    start = type("Start", (), {"public": (head, Local()), "n_units": 3, "unit": "row"})
    with pytest.raises(ValueError, match=r"cannot be pickled \(no pickle\)"):
        _resuming._hash_of_facts(start)


# -- where it is used ------------------------------------------------------------------------


KILLED = """
import os, sys
import numpy as np
from skmixdp import MixedDPLogisticRegression, resumable
from skmixdp._engine import GaussianMechanism
from skmixdp.privacy import PrivacyLedger

folder = sys.argv[1]
people = PrivacyLedger(f"{folder}/ledger.sqlite").add_dataset("people", epsilon=30.0, delta=1e-4)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
original, calls = GaussianMechanism.admit, []
def admit(self, *arguments):
    calls.append(1)
    if len(calls) == 4:
        os._exit(9)
    return original(self, *arguments)
GaussianMechanism.admit = admit
head = MixedDPLogisticRegression("noisy-gd", n_steps=8, ledger=people, delta=1e-4, classes=[0, 1])
with resumable(f"{folder}/fit.checkpoint"):
    head.fit(X, y)
print(head.n_iter_)
"""
