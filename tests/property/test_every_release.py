"""What every public release promises: one row for each of ``tests.releases``, one test for each promise.

Refusals come before noise and charge and quote nothing. A charge comes before its noise, and says how
it ended. What is released holds no exact sum, row or key. Seeds, large budgets and persons are
told alike, and the form in which rows are held changes nothing.
"""

import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skmixdp.exceptions import BudgetExceededError, NotPrivateWarning
from skmixdp.privacy import NoiseSource, PrivacyLedger
from skmixdp.privacy.noise import DiscreteNoise
from tests.conftest import failing
from tests.noise import watch
from tests.releases import PERSONS, RELEASES, N, X
from tests.secrets import NUMBER, ROW, TEXT, Needles, changed, reachable, refused

pytestmark = pytest.mark.filterwarnings("ignore:epsilon=.* guarantees next to nothing")

NAMED = pd.Series(PERSONS, name="patient")
every = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
of_persons = pytest.mark.parametrize(
    "release", [pytest.param(each, id=name) for name, each in RELEASES.items() if "groups" not in each.lacks]
)


def data_set(epsilon=1e3, delta=1e-3, **terms):
    return PrivacyLedger(":memory:").add_dataset("people", epsilon=epsilon, delta=delta, **terms)


@pytest.fixture
def people():
    """A data set of a ledger whose budget is large."""
    with warnings.catch_warnings(action="ignore"):
        return data_set()


@pytest.fixture
def nothing_released(monkeypatch):
    """Any noise fails the test. (Searches draw the order of their trials first.)"""
    for source in (NoiseSource, DiscreteNoise):
        monkeypatch.setattr(source, "add_noise", failing("something was released"))


# -- refusals ------------------------------------------------------------------------------

TERMS = {
    "epsilon": [0, -1, math.nan, math.inf, "a", True],
    "delta": [0, 1, -1, math.nan, "a"],
    "neighboring": ["swap", None],
    "random_state": [-1, 1.5, "a"],
    "ledger": [3, "ledger.sqlite", PrivacyLedger(":memory:")],
    "noise": ["gauss", None],
}


def wrong_terms(release):
    for name, values in TERMS.items():
        if name not in release.lacks:
            yield from ((name, value) for value in values)


@every
def test_bad_terms_are_refused_in_one_sentence_before_noise_and_charge(release, people, nothing_released):
    for name, value in wrong_terms(release):
        with pytest.raises((ValueError, TypeError), match=f"^{name}=") as caught:
            release(**{"ledger": people, name: value})
        said = str(caught.value)
        assert "\n" not in said and said.endswith(".") and ". " not in said, said
    assert not people.charges()


def bad_rows(y, gaps):
    """Rows, labels and ids that cannot be used, with a secret in or next to them."""
    odd = changed(X, (ROW, slice(0, 2)), [NUMBER, np.nan])
    if not gaps:
        for rows in (odd, sp.csr_array(odd), pd.DataFrame(odd, columns=list("abc")), -np.inf * odd):
            yield rows, y, None
    yield changed(X, (ROW, 1), TEXT, object), y, None
    yield changed(X, ROW, NUMBER).ravel(), y, None
    yield changed(X, ROW, NUMBER)[:0], None if y is None else y[:0], None
    if y is not None:
        yield X, changed(y, ROW, NUMBER, float)[:-1], None
        yield X, changed(y, ROW, TEXT, object), None
        yield X, changed(changed(y, ROW, NUMBER, float), ROW + 1, np.nan), None
    yield X, y, changed(PERSONS, ROW, int(NUMBER))[:-1]
    yield X, y, changed(changed(PERSONS, ROW, NUMBER, float), ROW + 1, np.nan)
    yield X, y, changed(PERSONS, ROW, TEXT, object)
    yield X, y, np.full(N, NUMBER)


@every
def test_bad_rows_are_refused_before_noise_and_charge_and_quoted_by_nothing(
    release, people, nothing_released
):
    for rows, y, groups in bad_rows(release.y, "refusal of gaps" in release.lacks):
        terms = {} if groups is None else {"groups": groups}
        if not terms.keys() & release.lacks:
            call = partial(release, rows, y, ledger=people, **terms)
            refused(call, (rows, y, groups))
    assert not people.charges()


# -- charges -------------------------------------------------------------------------------


@every
def test_a_charge_is_as_large_as_reported_and_says_how_it_ended(release, people, monkeypatch):
    result = release(ledger=people.for_purpose("churn model, Q3"))
    charges = people.charges()
    assert [(each.outcome, each.purpose) for each in charges] == [("finished", "churn model, Q3")] * len(
        charges
    )
    report = release.report(result)
    if report is not None:
        assert report.private and report.dataset == "people" and report.unit == "row"
        assert report.dataset_spent == pytest.approx(people.spent)
        assert "people, for 'churn model, Q3': epsilon " in str(report)
    n_charges, seen = len(people.charges()), []

    def crash(*arguments):
        seen.append(len(people.charges()))
        raise MemoryError

    monkeypatch.setattr(NoiseSource, "add_noise", crash)
    with pytest.raises((MemoryError, RuntimeError)):  # of searches and modules, whose errors tell nothing
        release(ledger=people)
    assert seen[0] > n_charges  # the charge came first
    assert all(charge.outcome.startswith("failed: ") for charge in people.charges()[n_charges:])


@every
@pytest.mark.usefixtures("nothing_released")
def test_what_exceeds_the_budget_or_is_another_relation_releases_nothing(release):
    few = data_set(0.01, 1e-3)
    with pytest.raises(BudgetExceededError):
        release(ledger=few)
    replaced = data_set(1e3, 1e-3, neighboring="replace_one")
    with pytest.raises(ValueError, match="not the relation"):
        release(ledger=replaced)
    assert not few.charges() + replaced.charges()


# -- what is kept --------------------------------------------------------------------------


@every
def test_what_is_released_holds_no_exact_sum_no_row_and_no_source_of_noise(release, monkeypatch):
    log = watch(monkeypatch)
    result = release()
    needles = Needles([*(each.exact for each in log), *X[[3, 77, ROW]]], N)
    assert log and len(needles.numbers) >= 9
    pickled = pickle.dumps(result)
    assert needles.in_object(result) == [] and needles.in_bytes(pickled) == []
    np.testing.assert_array_equal(release.numbers(pickle.loads(pickled)), release.numbers(result))
    kinds = NoiseSource, np.random.Generator, np.random.BitGenerator
    assert not any(isinstance(part, kinds) for part in reachable(result))


@pytest.mark.parametrize(
    "release",
    [pytest.param(each, id=name) for name, each in RELEASES.items() if not {"noise", "grid"} & each.lacks],
)
def test_discrete_noise_and_what_it_is_added_to_are_on_a_grid(release, monkeypatch):
    pytest.importorskip("opendp", reason="needs skmixdp[discrete]")
    log = watch(monkeypatch)
    report = release.report(release(noise="discrete"))
    assert report is None or report.noise == "discrete"
    for array, grid in ((array, each.grid) for each in log for array in (each.exact, each.noisy)):
        multiples = np.asarray(array) / grid
        assert np.abs(multiples).max() < 2**53
        np.testing.assert_array_equal(multiples, np.rint(multiples))


# -- seeds and warnings --------------------------------------------------------------------


def said_of(call):
    with warnings.catch_warnings(record=True, action="always") as caught:
        result = call()
    return result, caught


@every
def test_nothing_is_said_of_rows_that_repeat(release, monkeypatch):
    def stop(*arguments):
        raise MemoryError

    monkeypatch.setattr(NoiseSource, "add_noise", stop)  # what follows is said of released numbers

    def said_before_noise(places):
        def call():
            with pytest.raises((MemoryError, RuntimeError)):
                release(X[places], None if release.y is None else release.y[places])

        return [(each.category, str(each.message)) for each in said_of(call)[1]]

    assert said_before_noise(np.arange(N) // 8 * 8) == said_before_noise(np.arange(N))


@every
def test_a_seed_repeats_its_numbers_is_warned_of_and_reported(release, people):
    first, caught = said_of(lambda: release(random_state=0))
    warned, *more = (each for each in caught if each.category is NotPrivateWarning)
    assert len(more) < release.n_warnings
    assert "random_state is set" in str(warned.message) and "NOT private" in str(warned.message)
    assert warned.filename.endswith("releases.py")
    report = release.report(first)
    assert report is None or (not report.private and "NOT PRIVATE" in str(report))
    again = said_of(lambda: release(random_state=0))[0]
    np.testing.assert_array_equal(release.numbers(first), release.numbers(again))
    fresh = [release.numbers(release()) for _ in range(2)]
    # Each number has noise of its own.
    assert not np.any(np.equal(*fresh))


@every
def test_a_seed_is_warned_of_before_noise_and_charge(release, people, nothing_released):
    seeds_are_errors = warnings.catch_warnings(action="error", category=NotPrivateWarning)
    with seeds_are_errors, pytest.raises(NotPrivateWarning):
        release(random_state=0, ledger=people)
    assert not people.charges()


@every
def test_an_epsilon_and_a_delta_that_are_too_large_are_warned_of_once(release):
    result, caught = said_of(lambda: release(epsilon=20.0, delta=0.05))
    said = [str(each.message) for each in caught]
    report = release.report(result)
    for words in ("epsilon is above 10", "delta is not below 1/n"):
        assert report is None or any(text.startswith(words) for text in report.warnings), words
    # A threshold fits to some of the rows and evaluates the others.
    below = "delta=0.05 is not below 1/n" + (f" = {1 / N:.6g}" if release.n_warnings == 1 else "")
    for words in ("epsilon=20 guarantees next to", below):
        assert 1 <= len([text for text in said if text.startswith(words)]) <= release.n_warnings, (
            words,
            said,
        )


# -- persons -------------------------------------------------------------------------------


@of_persons
def test_persons_are_what_is_protected_charged_counted_and_warned_of(release):
    patients = data_set(500.0, 1e-3, unit="patient")
    report = release.report(release(groups=NAMED, ledger=patients))
    for charge in patients.charges():
        assert "persons (column 'patient')" in charge.description or "Search" in charge.description
    if report is not None:
        assert report.unit == "patient" and report.n_private == N / 2
        assert "all rows of one person (column 'patient')" in str(report) and str(N) not in str(report)
    _, caught = said_of(lambda: release(groups=PERSONS, delta=0.05))
    said = [str(each.message) for each in caught if "not below 1/n" in str(each.message)]
    assert 1 <= len(said) <= release.n_warnings and all(
        "allows all rows of a person to be" in each for each in said
    )
    assert release.n_warnings > 1 or f"1/n = {2 / N:.6g}" in said[0]
    # Compared with the number of rows, a warning, which is an error here, would tell how many persons have.
    report = release.report(release(groups=PERSONS, delta=1.2 / N))
    assert report is None or "delta is not below 1/n" not in report.warnings


@of_persons
@pytest.mark.usefixtures("nothing_released")
def test_what_persons_exclude_is_refused_before_the_charge(release):
    rows, persons = data_set(5.0), data_set(5.0, unit="person")
    for groups, ledger in ((NAMED, rows), (NAMED, persons), (None, persons)):
        with pytest.raises(ValueError, match="is not what dataset="):
            release(groups=groups, ledger=ledger)
    if "noise" not in release.lacks:
        with pytest.raises(ValueError, match=r"noise='discrete'|means over the rows of a person are not"):
            release(groups=PERSONS, noise="discrete", ledger=persons)
    assert not rows.charges() + persons.charges()


# -- forms of rows -------------------------------------------------------------------------

FORMS = {
    "list": lambda rows: rows.tolist(),
    "Fortran": np.asfortranarray,
    "frame": lambda rows: pd.DataFrame(rows, columns=list("abc")),
    "objects": lambda rows: rows.astype(object),
    "a column of objects": lambda rows: pd.DataFrame(rows, columns=list("abc")).astype({"b": object}),
    "nullable": lambda rows: pd.DataFrame(rows, columns=list("abc")).astype("Float64"),
}
FORMS_OF_LABELS = {
    "list": np.ndarray.tolist,
    "pandas": lambda y: pd.Series(y, index=range(5, N + 5)) if y.ndim == 1 else pd.DataFrame(y),
}


@every
@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.NotPrivateWarning", "ignore:X has feature names")
def test_the_form_of_rows_and_labels_changes_nothing(release):
    wanted = release.numbers(release(random_state=0))
    for name, form in FORMS.items():
        if name in release.lacks:
            continue
        numbers = release.numbers(release(form(X), random_state=0))
        np.testing.assert_allclose(numbers, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max(), err_msg=name)
    for name, form in FORMS_OF_LABELS.items() if release.y is not None else ():
        numbers = release.numbers(release(X, form(release.y), random_state=0))
        np.testing.assert_array_equal(numbers, wanted, err_msg=name)
