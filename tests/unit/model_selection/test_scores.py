"""Metrics of scores agree with scikit-learn's, and thresholds with what is asked for."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import accuracy_score, f1_score, log_loss, precision_score, recall_score, roc_auc_score

from skmixdp.model_selection import private_evaluation
from tests.given_models import GivenScores

pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:delta")

N = 4000
rng = np.random.default_rng(0)
LOGITS = rng.normal(-1.0, 2.0, N)
Y = (rng.random(N) < expit(LOGITS)).astype(int)


def rows(p):
    return np.column_stack([1 - p, p])


def almost_exact(P, y, **parameters):
    """Evaluation with so little noise that it does not show."""
    return private_evaluation(GivenScores(P.shape[1]), P, y, epsilon=1e6, random_state=0, **parameters)


@pytest.fixture(scope="module")
def found():
    return almost_exact(rows(expit(LOGITS)), Y)


@pytest.fixture(scope="module")
def noisy():
    return private_evaluation(GivenScores(), rows(expit(LOGITS)), Y, epsilon=1.0, random_state=0)


def test_areas_and_losses(found):
    assert found.roc_auc().value == pytest.approx(roc_auc_score(Y, LOGITS), abs=1e-3)
    assert found.log_loss().value == pytest.approx(log_loss(Y, expit(LOGITS)), abs=1e-3)
    assert found.share().value == pytest.approx(Y.mean(), abs=1e-3)


@pytest.mark.parametrize("place", [40, 128, 160, 200])
def test_metrics_at_a_threshold(found, place):
    threshold = found.edges[place]
    yes = expit(LOGITS) >= threshold
    at = {name: estimate.value for name, estimate in found.at(threshold).items()}
    metrics = {
        "precision": precision_score(Y, yes, zero_division=0),
        "recall": recall_score(Y, yes),
        "f1": f1_score(Y, yes),
        "accuracy": accuracy_score(Y, yes),
        "false positive rate": yes[Y == 0].mean(),
        "selection rate": yes.mean(),
    }
    assert at == pytest.approx(metrics, abs=2e-3)


def test_the_calibration_error(found):
    score = expit((found.logits[1:] + found.logits[:-1]) / 2)
    member = np.searchsorted(found.logits, LOGITS, side="right") - 1
    group = np.minimum((10 * score).astype(int), 9)[np.clip(member, 0, len(score) - 1)]
    exact = sum(abs(np.sum((Y - expit(LOGITS))[group == g])) for g in range(10)) / N
    assert found.calibration_error().value == pytest.approx(exact, abs=2e-3)
    off = almost_exact(rows(expit(LOGITS - 1)), Y)
    assert off.calibration_error().value > 0.1


def test_curves(found):
    curve = found.roc_curve()
    assert np.all(np.diff(curve.x) >= 0) and np.all(np.diff(curve.y) >= 0)
    assert curve.x[-1] == curve.y[-1] == 1 and curve.x[0] == curve.y[0] == 0
    yes = expit(LOGITS) >= curve.thresholds[:, np.newaxis]
    np.testing.assert_allclose(curve.x[1:-1], yes[1:-1, Y == 0].mean(axis=1), atol=5e-3)
    np.testing.assert_allclose(curve.y[1:-1], yes[1:-1, Y == 1].mean(axis=1), atol=5e-3)
    assert np.all(curve.low <= curve.y) and np.all(curve.y <= curve.high)
    precision = found.precision_recall_curve()
    assert np.all(np.diff(precision.x) >= 0) and np.all(np.diff(precision.y) <= 1e-12)
    calibration = found.calibration_curve()
    np.testing.assert_allclose(calibration.y, calibration.x, atol=0.08)


def test_curves_of_noise_alone_are_curves():
    nothing = private_evaluation(
        GivenScores(), rows(expit(LOGITS[:30])), Y[:30], epsilon=0.01, random_state=0
    )
    for curve in (nothing.roc_curve(), nothing.precision_recall_curve()):
        assert np.all(np.isfinite(np.stack(curve))) and np.all((curve.y >= 0) & (curve.y <= 1))
    assert len(nothing.calibration_curve().x) < 10
    assert all(end >= 0 for part in nothing.summary().values() for end in part[1:])
    for goal, value in (("f1", None), ("recall", 0.5)):
        with pytest.warns(UserWarning, match=f"the {goal} at the threshold is hidden by the noise"):
            assert 0 <= nothing.threshold(goal, value) <= 1
    assert 0 <= nothing.threshold("cost", (1, 1)) <= 1


class TestThresholds:
    def test_f1(self, found):
        best = max(f1_score(Y, expit(LOGITS) >= edge) for edge in found.edges[:-1])
        assert f1_score(Y, expit(LOGITS) >= found.threshold()) == pytest.approx(best, abs=2e-3)

    @pytest.mark.parametrize("wanted", [0.3, 0.7, 0.95])
    def test_recall(self, found, noisy, wanted):
        for evaluation, slack in ((found, 0.01), (noisy, 0.03)):
            reached = recall_score(Y, expit(LOGITS) >= evaluation.threshold("recall", wanted))
            assert reached == pytest.approx(wanted, abs=slack)

    @pytest.mark.parametrize("wanted", [0.5, 0.7, 0.85])
    def test_precision(self, found, noisy, wanted):
        for one, slack in ((found, 0.02), (noisy, 0.06)):
            reached = precision_score(Y, expit(LOGITS) >= one.threshold("precision", wanted))
            assert reached == pytest.approx(wanted, abs=slack)

    @pytest.mark.parametrize("costs", [(1, 1), (1, 9), (5.0, 1.0)])
    def test_costs(self, found, noisy, costs):
        """Probabilities are calibrated, so the best threshold is the false positive's part of the costs."""
        best = costs[0] / sum(costs)
        assert logit(found.threshold("cost", costs)) == pytest.approx(logit(best), abs=1.0)

        def cost(threshold):
            yes = expit(LOGITS) >= threshold
            return costs[0] * np.sum(yes & (Y == 0)) + costs[1] * np.sum(~yes & (Y == 1))

        assert cost(noisy.threshold("cost", costs)) < 1.1 * cost(best)

    def test_a_precision_that_nothing_reaches_is_said(self):
        found = almost_exact(rows(np.full(100, 0.6)), np.arange(100) % 2)
        with pytest.warns(
            UserWarning, match=r"no threshold reaches the precision 0.9; the largest found is 0.5"
        ):
            found.threshold("precision", 0.9)

    @pytest.mark.parametrize(
        ("goal", "value"),
        [("auc", None), ("f1", 0.5), ("recall", None), ("precision", 2), ("cost", 3), ("cost", (0, 1))],
    )
    def test_bad_goals_are_refused(self, found, goal, value):
        with pytest.raises(ValueError, match=r"^(goal|value)=.*\.$"):
            found.threshold(goal, value)


def test_intervals_of_these_rows_are_shorter(noisy):
    these = noisy.with_intervals(sampling=False).summary()
    for name, wide in noisy.summary().items():
        assert wide.high - wide.low >= these[name].high - these[name].low
        assert wide.value == these[name].value
    assert "these rows" in str(noisy.with_intervals(0.8, sampling=False))


@pytest.mark.parametrize("bad", [{"level": 1.0}, {"level": "all"}, {"sampling": 1}])
def test_bad_intervals_are_refused(noisy, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        noisy.with_intervals(**bad)


def test_the_text_states_what_there_is(noisy):
    text = str(noisy)
    assert text.startswith(
        "NO GUARANTEE: the noise comes from a seed\nScoreEvaluation of 4000 private rows\n"
    )
    assert "95% intervals for rows drawn like these" in text
    private = private_evaluation(GivenScores(), rows(expit(LOGITS)), Y, epsilon=1.0)
    assert str(private).startswith("ScoreEvaluation of 4000 private rows\n")
    assert str(private).endswith("epsilon 1, delta 1e-05")


class TestTop:
    P = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]).repeat(100, axis=0)
    y = np.array([0, 1, 1, 2]).repeat(100)

    def test_it_is_the_layout_of_several_classes(self):
        found = almost_exact(self.P, self.y)
        assert found.question == "correct" and found.counts.shape[0] == 1
        assert found.summary()["accuracy"].value == pytest.approx(0.5, abs=1e-3)
        right = self.P.argmax(axis=1) == self.y
        assert found.roc_auc().value == pytest.approx(roc_auc_score(right, self.P.max(axis=1)), abs=1e-2)
        assert found.edges[0] == pytest.approx(1 / 3)

    def test_two_classes_have_it_if_asked(self):
        found = almost_exact(rows(expit(LOGITS)), Y, layout="top")
        assert found.share().value == pytest.approx(np.mean((LOGITS > 0) == Y), abs=1e-3)


class TestOneVsRest:
    y = rng.integers(0, 3, N)
    P = np.exp(rng.normal(size=(N, 3)) + 2 * np.eye(3)[y])
    P /= P.sum(axis=1, keepdims=True)

    def test_each_class_has_its_metrics(self):
        found = almost_exact(self.P, self.y, layout="one_vs_rest")
        assert found.classes == [0, 1, 2] == list(found.by_class)
        for label, part in found.by_class.items():
            exact = roc_auc_score(self.y == label, self.P[:, label])
            assert part.roc_auc().value == pytest.approx(exact, abs=2e-3)
        summary = found.summary()
        mean = roc_auc_score(self.y, self.P, multi_class="ovr")
        assert summary["ROC AUC, mean"].value == pytest.approx(mean, abs=2e-3)
        assert summary["log-loss"].value == pytest.approx(log_loss(self.y, self.P), abs=2e-3)

    def test_a_table_of_labels_has_it_too(self):
        labels = (rng.random((N, 3)) < self.P).astype(float)
        found = almost_exact(self.P, labels)
        exact = roc_auc_score(labels, self.P, average=None)
        areas = [part.roc_auc().value for part in found.by_class.values()]
        assert areas == pytest.approx(exact, abs=2e-3)
        losses = [log_loss(labels[:, j], self.P[:, j]) for j in range(3)]
        assert found.log_loss().value == pytest.approx(np.mean(losses), abs=2e-3)

    def test_a_class_that_noise_hides_hides_the_mean(self):
        few = private_evaluation(
            GivenScores(3), self.P[:60], self.y[:60], epsilon=0.1, layout="one_vs_rest", random_state=0
        )
        assert math.isnan(few.summary()["ROC AUC, mean"].value)
