"""EvaluationDisplay draws what an evaluation tells."""

import numpy as np
import pytest

from skmixdp.inspection import EvaluationDisplay
from skmixdp.model_selection import private_evaluation
from tests.given_models import GivenScores
from tests.unit.model_selection import test_scores
from tests.unit.model_selection.test_residuals import evaluation
from tests.unit.model_selection.test_scores import LOGITS, Y, expit, rows

pytest.importorskip("matplotlib", reason="needs skmixdp[plot]")
pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:delta")


@pytest.fixture(scope="module")
def binary():
    return private_evaluation(GivenScores(), rows(expit(LOGITS)), Y, epsilon=1.0)


def names(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("kind", ["roc", "precision_recall", "calibration"])
def test_curves(binary, kind):
    display = EvaluationDisplay.from_evaluation(binary, kind=kind)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlim() == (-0.02, 1.02) and display.ax_.get_ylim() == (-0.02, 1.02)
    texts = names(display)
    assert any("95% interval" in text for text in texts)
    if kind == "roc":
        assert f"area {binary.roc_auc()}" in texts
        curve = binary.roc_curve()
        np.testing.assert_allclose(
            display.ax_.lines[0].get_xydata(), np.column_stack([curve.x, curve.y]), atol=0
        )


def test_the_first_kind_is_the_default_and_axes_may_be_given(binary):
    display = binary.plot()
    assert display.kind == "roc"
    assert EvaluationDisplay.from_evaluation(binary, ax=display.ax_).ax_ is display.ax_
    assert "of the noise" in str(names(binary.with_intervals(sampling=False).plot()))


def test_classes():
    of = test_scores.TestOneVsRest  # not imported by name, which would run its tests here
    display = private_evaluation(GivenScores(3), of.P, of.y, epsilon=1.0, layout="one_vs_rest").plot()
    assert display.kind == "classes"
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    assert "95% interval" in display.ax_.get_xlabel()


def test_residuals():
    display = evaluation(epsilon=1.0, random_state=None).plot()
    assert display.kind == "residuals" and display.ax_.get_ylabel() == "Density of the rows"
    low, high = display.ax_.get_xlim()
    assert low == -high and 5 < high < 30


@pytest.mark.parametrize("kind", ["residuals", "classes", "best"])
def test_a_kind_that_does_not_suit_is_refused(binary, kind):
    with pytest.raises(ValueError, match=rf"^kind='{kind}' does not suit ScoreEvaluation; pass one of .*\.$"):
        EvaluationDisplay.from_evaluation(binary, kind=kind)
