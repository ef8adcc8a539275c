"""The price of choosing among trials, against dp-accounting and against closed forms."""

import json
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy.stats import geom

from skmixdp.privacy import (
    GaussianEvent,
    PrivacyFilter,
    SearchReport,
    SelectionEvent,
    epsilon_of_event,
    mu_of_budget,
    mu_of_event,
    rdp_of_event,
)
from skmixdp.privacy.accounting.selection import SearchTerms, TrialLaw
from tests.rounding import assert_relative

DELTA = 1e-5
LAWS = {"one trial": TrialLaw(1), "few": TrialLaw(3.5), "ten": TrialLaw(10), "many": TrialLaw(1000)}


@pytest.fixture(params=LAWS.values(), ids=LAWS)
def law(request):
    return request.param


class TestBound:
    @pytest.mark.parametrize("neighboring", ["add_or_remove_one", "replace_one"])
    def test_it_is_that_of_dp_accounting(self, law, neighboring):
        sigma = 5.0 if neighboring == "add_or_remove_one" else 10.0
        event = SelectionEvent(sigma, law.mean)
        accountant = RdpAccountant()
        accountant.compose(dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(5.0), law.mean, 1.0))
        expected = accountant.get_epsilon(DELTA)
        # The orders differ; ours reach closer to 1, which counts where there are few trials.
        assert 0.97 * expected < epsilon_of_event(event, DELTA, neighboring) < expected * (1 + 2e-3)

    @pytest.mark.parametrize("gamma", [0.01, 0.3])
    def test_divergences_are_those_of_corollary_4(self, gamma):
        """Papernot and Steinke 2022, with eta = 1: rho-zCDP trials, rho at most log(1 / gamma)."""
        sigma, mean = 3.0, 1 / gamma
        rho = 1 / (2 * sigma**2)
        event = SelectionEvent(sigma, mean)
        constant = 4 * math.sqrt(-rho * math.log(gamma)) - rho
        turn = 1 + math.sqrt(math.log(mean) / rho)
        low = 2 * math.sqrt(rho * math.log(mean)) + constant
        orders = np.array([turn / 2 + 0.6, turn, 3 * turn])
        high = rho * (3 * turn - 1) + math.log(mean) / (3 * turn - 1) + constant
        found = rdp_of_event(event, orders, "add_or_remove_one")
        assert_relative(found, [low, low, high], 2e-3)

    def test_divergences_do_not_depend_on_what_else_is_asked(self, law):
        event = SelectionEvent(4.0, law.mean)
        every = np.array([1.5, 2.0, 8.0, 64.0])
        alone = [rdp_of_event(event, np.array([order]), "replace_one")[0] for order in every]
        assert_relative(rdp_of_event(event, every, "replace_one"), alone, 2e-3)

    def test_it_has_no_gaussian_dp_curve(self):
        assert mu_of_event(SelectionEvent(5.0, 4), "add_or_remove_one") == math.inf

    def test_a_filter_takes_it_until_the_budget_is_spent(self):
        event = SearchTerms(DELTA).event(TrialLaw(5), SearchTerms(DELTA).fit_epsilon(TrialLaw(5), 1.4))
        budget = PrivacyFilter.for_first(event, epsilon=3.0, delta=DELTA, neighboring="add_or_remove_one")
        spent = budget.cost(event)
        assert budget.admits(0.0, event) and budget.admits(spent, event)
        assert not budget.admits(5 * spent, event)


class TestTerms:
    def test_fixed_trials_compose_exactly(self):
        for n in (1, 3, 40):
            event = SearchTerms(DELTA).event(n, 1.0)
            assert isinstance(event, GaussianEvent)
            assert event.mu("add_or_remove_one") == pytest.approx(math.sqrt(n) * mu_of_budget(1.0, DELTA))

    def test_scores_are_part_of_it(self):
        terms = SearchTerms(DELTA, score_share=0.2)
        mu, count = mu_of_budget(1.0, DELTA), 1 / terms.score_multiplier(1.0)
        assert count**2 / (mu**2 + count**2) == pytest.approx(0.2)
        total = terms.event(6, 1.0).mu("add_or_remove_one")
        assert total**2 == pytest.approx(6 * (mu**2 + count**2))
        assert SearchTerms(DELTA).score_multiplier(1.0) is None

    @pytest.mark.parametrize(
        ("epsilon", "terms", "known"),
        [
            (0.3, SearchTerms(DELTA), [1, 5, *LAWS.values()]),
            (3.0, SearchTerms(DELTA, "replace_one", score_share=0.1), [5, TrialLaw(8)]),
            (3.0, SearchTerms(1e-6, noise="discrete"), [5, TrialLaw(8)]),
        ],
        ids=["plain", "replaced rows and counts", "discrete"],
    )
    def test_the_solved_budget_is_spent_and_not_exceeded(self, epsilon, terms, known):
        for trials in known:
            self.check_solved_budget(epsilon, terms, trials)

    def check_solved_budget(self, epsilon, terms, trials):
        fit_epsilon = terms.fit_epsilon(trials, epsilon)
        assert epsilon * (1 - 1e-5) < terms.epsilon(trials, fit_epsilon) <= epsilon
        assert terms.epsilon(trials, fit_epsilon * 1.001) > epsilon

    def test_few_trials_are_cheaper_plainly_and_many_are_cheaper_at_random(self):
        terms = SearchTerms(DELTA)
        assert terms.fit_epsilon(2, 3.0) > terms.fit_epsilon(TrialLaw(2), 3.0)
        assert terms.fit_epsilon(30, 3.0) < terms.fit_epsilon(TrialLaw(30), 3.0)

    def test_a_budget_that_pays_for_nothing_is_refused(self):
        with pytest.raises(ValueError, match=r"leaves nothing for one of the fits .* fewer trials"):
            SearchTerms(DELTA).fit_epsilon(10**12, 1e-3)

    @pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
    def test_the_share_of_scores_is_a_fraction(self, share):
        with pytest.raises(ValueError, match="score_share="):
            SearchTerms(DELTA, score_share=share)

    @pytest.mark.parametrize("n_trials", [0, 2.5])
    def test_a_fixed_number_is_whole(self, n_trials):
        with pytest.raises(ValueError, match="whole number"):
            SearchTerms(DELTA).event(n_trials, 1.0)


class TestLaw:
    @pytest.mark.parametrize("mean", [0.5, 2e6, math.inf, math.nan, True])
    def test_a_mean_outside_its_range_is_refused(self, mean):
        with pytest.raises(ValueError, match="mean="):
            TrialLaw(mean)

    @pytest.mark.parametrize("mean", [1.0, 1 + 1e-9, 1.5, 8.0, 1e6])
    def test_a_number_of_trials_is_the_quantile_of_the_geometric_distribution(self, mean):
        law = TrialLaw(mean)
        for number in (1, 2, 5, 11) if mean > 1 else ():
            below = geom.cdf(number, 1 / mean)
            if below < 1 - 1e-9:
                assert law.number(below - 1e-9) <= number < law.number(below + 1e-9)
        assert law.number(0.0) == 1 <= law.number(math.nextafter(1.0, 0.0)) < 40 * mean


def report(**changes):
    values = {
        "epsilon": 3.0,
        "delta": DELTA,
        "neighboring": "add_or_remove_one",
        "strategy": "grid",
        "n_trials": 4.0,
        "fit_epsilon": 1.38,
        "noise_multiplier": 2.5,
        "scoring": "private",
        "score_noise": 0.002,
        "costs": {"grid": 3.0, "random": 3.4},
        "affordable": {"grid": 1.38, "random": 1.2},
        "n_private": 1000,
        "n_public": 50,
        "n_held_out": 0,
        "treated_as_public": ("n", "<classes>"),
        "noise": "cryptographic",
        "warnings": ("floats",),
    }
    return SearchReport(**(values | changes))


class TestReport:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, "Privacy report of a search"),
            ({}, "(3, 1e-05)-differential privacy of the whole search"),
            ({}, "epsilon 1.38: that of one fit"),
            ({}, "4 candidates, each tried once"),
            ({}, "noisy score (standard deviation 0.002)"),
            ({}, "epsilon 3 by grid; epsilon 3.4 by random"),
            ({"strategy": "random"}, "a secret random number (geometric, mean 4); only the best is released"),
            ({"scoring": "public", "score_noise": None, "n_held_out": 10}, "10 public rows kept out"),
            (
                {"dataset": "p", "dataset_epsilon": 5.0, "dataset_delta": DELTA, "dataset_spent": 4.0},
                "p: epsilon 4 of (5, 1e-05) is spent",
            ),
            ({"noise": "seeded"}, "NOT PRIVATE"),
        ],
    )
    def test_the_table_states_what_there_is(self, changes, words):
        assert words in str(report(**changes))
        assert report(**changes).private == (words != "NOT PRIVATE")

    def test_json_and_html(self):
        values = json.loads(report().to_json())
        assert values["private"] and values["costs"] == {"grid": 3.0, "random": 3.4}
        assert "&lt;classes&gt;" in report()._repr_html_()
