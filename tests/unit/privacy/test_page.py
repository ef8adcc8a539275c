"""Bounds on attackers, in numbers and in words, and the pages that state them."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import model_card
from skmixdp.privacy import GaussianEvent, PrivacyLedger, epsilon_of, noise_multiplier_for
from skmixdp.privacy.report import attack_section, attack_success, attack_words
from tests.private_names import Section, as_html, as_markdown, as_text

ADD, REPLACE = "add_or_remove_one", "replace_one"


def test_the_best_attack_on_gaussian_noise_reaches_the_bound():
    """The likelihood ratio test between N(0, 1) and N(mu, 1), by simulation."""
    rng = np.random.default_rng(0)
    for mu in (0.1, 0.5, 1.0, 3.0):
        truth = rng.random(400_000) < 0.5
        seen = rng.normal(size=truth.size) + mu * truth
        right = np.mean((seen > mu / 2) == truth)
        assert abs(right - attack_success(1.0, 1e-5, mu)) < 5 * 0.5 / math.sqrt(truth.size)
        for wrong in (2 / 3, 3 / 2):
            assert mu < 0.3 or abs(right - attack_success(1.0, 1e-5, mu * wrong)) > 0.01


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.3])
def test_the_worst_mechanism_reaches_the_bound_of_epsilon_and_delta(epsilon, delta):
    """Randomised response that tells the truth outright with probability delta."""
    told = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon)) + delta
    assert attack_success(epsilon, delta) == pytest.approx(told, abs=1e-12)


def test_the_bound_of_mu_is_within_that_of_each_epsilon():
    for mu in (0.05, 0.3, 1.0, 4.0):
        for delta in (1e-9, 1e-5, 1e-2):
            assert attack_success(0, 0, mu) <= attack_success(epsilon_of(1 / mu, 1, delta=delta), delta)
    assert (attack_success(math.inf, 1e-5), attack_success(0.0, 0.0)) == (1.0, 0.5)


def test_words_are_rounded_up_and_name_what_is_protected():
    assert attack_words(0.5500001, ADD) == (
        "guesses right at most 56% of the time whether one given row is in the data; "
        "a coin toss is right 50% of the time"
    )
    assert "99.9" not in attack_words(0.9991, ADD) and "at most 100%" in attack_words(0.9991, ADD)
    assert "which of two given rows is in" in attack_words(0.6, REPLACE)
    assert "whether one given person is in" in attack_words(0.6, ADD, "person")
    assert r"of two given persons (column 'pa\\ntient') is in" in attack_words(0.6, REPLACE, "pa\ntient")


# -- ledgers -------------------------------------------------------------------------------


def people(epsilon=3.0, **terms):
    return PrivacyLedger(":memory:").add_dataset("people", epsilon=epsilon, **({"delta": 1e-5} | terms))


def test_a_spent_budget_leaves_nothing():
    dataset = people(epsilon=1.0)
    multiplier = noise_multiplier_for(1.0, 1e-5, n_steps=1)
    dataset.charge(GaussianEvent(multiplier, 1), neighboring=ADD)
    # Rounding may leave a little.
    while (left := dataset.remaining) > 0:
        dataset.charge(GaussianEvent(noise_multiplier_for(left, 1e-5, n_steps=1), 1), neighboring=ADD)
    assert dataset.fits_left(epsilon=1e-3) == 0
    assert re.search("<th[^>]*>left</th><td[^>]*>nothing</td>", dataset.report().to_html())


def test_a_data_set_claims_what_all_charges_together_may_tell():
    dataset = people()
    assert dataset.account.attack_success == attack_success(3.0, 1e-5)  # the first charge decides
    dataset.charge(GaussianEvent(30.0, 5), neighboring=ADD)
    claimed = dataset.account.attack_success
    while dataset.fits_left(event=GaussianEvent(8.0, 1)):
        dataset.charge(GaussianEvent(8.0, 1), neighboring=ADD)
    used = norm.cdf(math.sqrt(dataset.account.total) / 2)
    assert dataset.account.attack_success == claimed
    assert 0.99 * claimed < used <= claimed < attack_success(3.0, 1e-5)


@pytest.mark.parametrize("terms", [{"composition": "renyi"}, {}])
def test_without_gaussian_sums_the_budget_is_the_bound(terms):
    dataset = people(**terms)
    dataset.charge(GaussianEvent(30.0, 5, noise="discrete"), neighboring=ADD)
    assert dataset.account.attack_success == attack_success(3.0, 1e-5)


@pytest.mark.parametrize("event", [GaussianEvent(6.5, 1, noise="discrete"), GaussianEvent(1.0, 2, 0.01)])
def test_what_no_sum_can_hold_is_bounded_by_the_budget(event):
    dataset = people(composition="gaussian")
    dataset.charge(event, neighboring=ADD)
    assert dataset.account.attack_success == attack_success(3.0, 1e-5)


def test_a_leak_leaves_no_protection_and_no_claim():
    dataset = people()
    dataset.charge(GaussianEvent(30.0, 5), neighboring=ADD, leaks=("a scaler",))
    text = dataset.report().to_html()
    assert dataset.account.attack_success == 1.0
    assert ">100%<" in text and "guesses" not in text and "NO GUARANTEE; without the leaks" in text


def test_a_page_says_charges_as_sentences():
    dataset = people(unit="patient")
    charged = dataset.for_purpose("churn <model>, Q3")
    made = charged.charge(
        GaussianEvent(13.6, 12), neighboring=ADD, unit="patient", description="A head, 90 rows"
    )
    dataset._record_outcome(made, "failed: KeyboardInterrupt")
    dataset.charge(GaussianEvent(30.0, 1), neighboring=ADD, unit="patient", description="A score")
    text = dataset.report().to_html()
    assert "A head, 90 rows, for &#39;churn &lt;model&gt;, Q3&#39;. It failed: KeyboardInterrupt." in text
    assert ": A score. It is open. Epsilon " in text and " of 3 was spent then." in text
    assert "{" not in text.split("</style>")[1] and not re.search(r"\d\.\d{6}", text)  # no JSON, no noise
    assert "at most 65% of the time whether one given person (column &#39;patient&#39;) is in" in text
    assert f"or {dataset.fits_left(epsilon=1)} with epsilon 1" in text
    short = dataset.report(charges="failed").to_html()
    assert "Charges that failed or have no guarantee" in short and "A score" not in short


def test_a_page_of_a_new_data_set_claims_nothing_yet():
    text = people(0.5).report().to_html()
    assert "by the first charge" in text and "guesses" not in text and "None." in text
    assert "epsilon of about 0.5</td>" in text  # and no fit with epsilon 1


# -- fits ----------------------------------------------------------------------------------

X, Y = load_iris(return_X_y=True)


def head(**terms):
    known = {"epsilon": 1.0, "delta": 1e-3, "classes": [0, 1, 2]}
    return MixedDPLogisticRegression("noisy-gd", **(known | terms)).fit(X, Y)


def test_a_report_uses_its_mu_where_it_has_one():
    exact, sampled = head(), head(batch_size=50, n_steps=5)
    assert exact.privacy_.attack_success == norm.cdf(exact.privacy_.mu / 2)
    assert sampled.privacy_.attack_success == attack_success(sampled.privacy_.epsilon, 1e-3)
    assert "at most 58% of the time" in model_card(exact).guarantee["an attacker"]


def test_a_page_of_a_fit_says_what_it_is_and_what_it_is_not():
    dataset = people().for_purpose("churn model, Q3")
    counted = {"accuracy": (0.9, "noisy count, epsilon 1")}
    scores = {"public_scores": {"accuracy": 0.875}, "accounted_scores": counted}
    card = model_card(head(ledger=dataset), title="Iris", **scores)
    text = card.to_html()
    for words in (
        "<h1>Iris</h1>",
        f"Written on {card.date}.",
        "An attacker guesses right at most 58% of the time whether one given row is in the data",
        "50%: a coin toss",
        "100%: no protection",
        "<th>preprocessing</th><td>bounds the lengths of rows</td>",
        "<td>150 private</td>",
        "people, for &#39;churn model, Q3&#39;: epsilon ",
        "<h2>Public: anyone may learn this from the model</h2>",
        "<h2>Not covered, and assumed</h2>",
        "not the rows that are predicted",
        "<td>accuracy</td><td>0.875</td><td>public</td>",
        "<td>accuracy</td><td>0.9</td><td>private, accounted for: noisy count, epsilon 1</td>",
    ):
        assert words in text, words
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", card.date) and f"Written on {card.date}." in card.to_markdown()


def test_a_page_of_a_seeded_fit_begins_so_and_claims_nothing():
    text = model_card(head(random_state=0)).to_html()
    assert text.index("NO GUARANTEE: the noise comes from a seed") < text.index("<h1>")
    assert ">100%<" in text and "guesses" not in text and "<li>random_state is set" in text


@pytest.mark.parametrize("page", ["ledger", "fit"])
def test_pages_are_one_file_without_scripts_or_links(page):
    nasty = "<script>alert('x')</script>"
    if page == "ledger":
        ledger = PrivacyLedger(":memory:")
        named = ledger.add_dataset(nasty, epsilon=1.0, delta=1e-5).for_purpose(nasty)
        named.charge(GaussianEvent(30.0, 1), neighboring=ADD, description=nasty)
        text = ledger.report().to_html()
    else:
        text = model_card(head(), title=nasty, description=nasty, public_scores={nasty: 0.5}).to_html()
    assert text.startswith("<!DOCTYPE html>") and text.count("&lt;script&gt;") >= 3
    assert not re.search(r"(?i)<(script|link|img|iframe|a)\b|\b(href|src)=|url\(|@import|https?:|file:", text)
    ElementTree.fromstring(text.split("\n", 1)[1])  # well formed


def test_what_is_empty_is_left_out():
    empty = [Section("Warnings")]
    assert as_html("", empty, "Title") == "<h1>Title</h1>" and as_markdown("Title", "", empty) == "# Title\n"
    assert "<p>" not in as_html("", [attack_section(1.0, "")])


def test_forms_of_a_document_have_the_same_content():
    section = Section(
        *("<A>", [("name", "1 | 2")], ("first", "second"), ["Before."], ["Listed."], ["After."]), level=3
    )
    assert as_text("NO", [section]).splitlines() == [
        *("NO", "<A>", "  first  second", "  name   1 | 2", "  After.")
    ]
    assert as_markdown("T", "NO", [section]).split("\n\n") == [
        *(
            "**NO**",
            "# T",
            "### &lt;A&gt;",
            "Before.",
            "| first | second |\n| --- | --- |\n| name | 1 \\| 2 |",
        ),
        *("- Listed.", "After.\n"),
    ]
    assert re.findall("<(?:th|td|li|p|b|h1|h3)>([^<]+)<", as_html("NO", [section], "T")) == [
        *("NO", "T", "&lt;A&gt;", "Before.", "first", "second", "name", "1 | 2", "Listed.", "After.")
    ]
    assert "<caption>&lt;A&gt;</caption>" in as_html("", [section])
