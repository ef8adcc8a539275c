"""Displays of one fit: its rows, its steps, its confusions, and its audits."""

import itertools
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from skmixdp import MixedDPLogisticRegression, inspection
from skmixdp.audit import AuditResult, per_instance_epsilon
from skmixdp.inspection import (
    AuditDisplay,
    ConfusionDisplay,
    GradientNormsDisplay,
    PerInstanceDisplay,
    PublicWeightDisplay,
    StepHistory,
)
from tests.private_names import OKABE_ITO, shares_of
from tests.rounding import assert_close

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore")


def fit(digits, **parameters):
    X, y, X_pub, y_pub = digits
    parameters = {"algorithm": "adamix", "n_steps": 5, "epsilon": 3.0, "random_state": 0} | parameters
    clf = MixedDPLogisticRegression(record_per_instance=True, **parameters)
    return clf.set_callbacks(StepHistory()).fit(X, y, X_pub=X_pub, y_pub=y_pub)


@pytest.fixture(scope="module")
def fitted(digits):
    return fit(digits)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def draws(display):
    display.figure_.draw_without_rendering()
    assert display.figure_ is display.ax_.figure
    return display


class TestPerInstance:
    def test_a_curve_is_sorted_and_below_its_guarantee(self, fitted, ax):
        display = draws(PerInstanceDisplay.from_estimators({"AdaMix": fitted}, ax=ax))
        line = display.lines_["AdaMix"]
        np.testing.assert_array_equal(line.get_ydata(), np.sort(per_instance_epsilon(fitted)))
        assert_close(line.get_xdata()[[0, -1]], [50 / 340, 100 - 50 / 340])
        assert_close(display.worst_["3"].get_ydata(), 3, 1e-6)
        assert legend(display) == ["AdaMix", "guarantee: ε = 3"]
        assert display.ax_.get_ylabel() == "ε of the row at δ = 1e-5"
        assert display.ax_.get_ylim()[0] == 0

    def test_fits_differ_in_colour_marker_and_stroke(self, fitted, digits, ax):
        other = fit(digits, algorithm="noisy-gd", epsilon=1.0)
        display = draws(PerInstanceDisplay.from_estimators({"a": fitted, "b": other}, ax=ax))
        for look in ("get_color", "get_marker", "get_linestyle"):
            assert len({getattr(line, look)() for line in display.lines_.values()}) == 2
        assert set(display.worst_) == {"1", "3"}

    def test_all_epsilons_are_at_the_delta_that_is_asked_for(self, fitted, digits, ax):
        other = fit(digits, delta=1e-6)
        with pytest.raises(ValueError, match="pass delta="):
            PerInstanceDisplay.from_estimators({"a": fitted, "b": other}, ax=ax)
        display = PerInstanceDisplay.from_estimators({"a": fitted, "b": other}, delta=1e-4, ax=ax)
        np.testing.assert_array_equal(
            display.lines_["b"].get_ydata(), np.sort(per_instance_epsilon(other, 1e-4))
        )
        assert max(display.worst.values()) < 3

    def test_no_estimator_is_refused(self):
        with pytest.raises(ValueError, match="estimators is empty"):
            PerInstanceDisplay.from_estimators({})


class TestSteps:
    def test_norms_and_clip_are_those_of_the_history(self, fitted, ax):
        (history,) = fitted._skl_callbacks
        display = draws(GradientNormsDisplay.from_estimator(fitted, ax=ax))
        np.testing.assert_array_equal(display.norms_.get_xdata(), [1, 2, 3, 4, 5])
        expected = [record["public_gradient_norms"][1] for record in history.steps]
        np.testing.assert_array_equal(display.norms_.get_ydata(), expected)
        (clip,) = display.clips_
        np.testing.assert_array_equal(clip.get_ydata(), [r["sensitivities"][0] for r in history.steps])
        assert display.ax_.get_yscale() == "log"
        assert legend(display)[-1] == "sensitivity (clip)"

    def test_gep_has_two_clips(self, digits, ax):
        display = draws(GradientNormsDisplay.from_estimator(fit(digits, algorithm="gep"), ax=ax))
        assert len(display.clips_) == 2
        assert legend(display)[-2:] == ["sensitivity of array 1", "sensitivity of array 2"]

    def test_without_public_rows_there_are_no_norms(self, digits, ax):
        X, y, *_ = digits
        history = StepHistory()
        clf = MixedDPLogisticRegression("noisy-gd", n_steps=3, classes=range(10)).set_callbacks(history)
        clf.fit(X, y)
        display = draws(GradientNormsDisplay.from_estimator(clf, ax=ax))
        assert display.norms_ is None and display.range_ is None and len(display.clips_) == 1

    def test_public_weights(self, fitted, ax):
        display = draws(PublicWeightDisplay.from_estimator(fitted, ax=ax))
        assert_close(display.line_.get_ydata(), 60 / 400)

    def test_a_fit_without_history_is_refused(self, digits):
        with pytest.raises(ValueError, match=r"set_callbacks\(StepHistory\(\)\)"):
            PublicWeightDisplay.from_estimator(MixedDPLogisticRegression())
        with pytest.raises(ValueError, match="no step"):
            PublicWeightDisplay.from_estimator(MixedDPLogisticRegression().set_callbacks(StepHistory()))


class TestConfusion:
    COUNTS = np.array([[8.0, 2.0, 0.0], [1.0, 9.0, 0.0], [0.0, 3.0, 0.0]])

    def test_marks_are_recalls_and_largest_confusions(self, ax):
        display = draws(ConfusionDisplay.from_results(self.COUNTS, ["a", "b", "c"], ax=ax))
        assert_close(display.recalls_.lines[0].get_xdata(), [80, 90, 0])
        assert_close(display.confusions_.lines[0].get_xdata(), [20, 10, 100])
        assert [text.get_text() for text in display.labels_] == ["b", "a", "b"]
        assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a", "b", "c"]
        assert not display.recalls_.has_xerr
        assert display.ax_.get_ylabel() == "Class"

    def test_intervals_cover_what_noise_does(self):
        rng = np.random.default_rng(0)
        counts = np.array([[60.0, 30.0, 10.0]] * 3)
        true, _ = shares_of(counts, 0.0)
        inside = []
        for _ in range(2000):
            shares, halves = shares_of(counts + 4 * rng.normal(size=(3, 3)), 4.0)
            inside.append(np.abs(shares - true) <= halves)
        # 6000 draws of each: the standard error is 0.3%.
        np.testing.assert_allclose(np.mean(inside, axis=(0, 1)), 0.95, atol=0.015)

    def test_a_class_that_noise_hides_has_no_marks(self, ax):
        display = draws(ConfusionDisplay.from_results(self.COUNTS, list("abc"), noise_scale=1.0, ax=ax))
        assert np.isnan(display.recalls_.lines[0].get_xdata()[2])
        assert display.recalls_.has_xerr and "95% interval" in display.ax_.get_xlabel()
        assert len(display.labels_) == 2

    def test_private_rows_are_counted_with_noise(self, fitted, digits, ax):
        X, y, *_ = digits
        exact = ConfusionDisplay.from_estimator(fitted, X, y, ax=ax).counts
        assert exact.sum() == len(X) and np.trace(exact) == round(fitted.score(X, y) * len(X))
        noisy = draws(ConfusionDisplay.from_estimator(fitted, X, y, noise_multiplier=3.0, ax=ax)).counts
        assert 2.2 < np.std(noisy - exact) < 3.8

    def test_many_classes_get_a_taller_figure(self):
        import matplotlib.pyplot as plt

        display = ConfusionDisplay.from_results(np.eye(40), range(40))
        plt.close(draws(display).figure_)
        boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
        assert all(above.y0 >= below.y1 - 1 for above, below in itertools.pairwise(boxes))

    def test_counts_of_another_shape_are_refused(self):
        with pytest.raises(ValueError, match="one row and one column"):
            ConfusionDisplay.from_results(self.COUNTS, ["a", "b"])
        with pytest.raises(ValueError, match="noise_scale=-1"):
            ConfusionDisplay.from_results(self.COUNTS, ["a", "b", "c"], noise_scale=-1)


class TestAudit:
    @staticmethod
    def result(**changes):
        values = {
            "epsilon": 2.0,
            "delta": 1e-5,
            "mu": 0.5,
            "epsilon_from_mu": 3.0,
            "measured_mu": 0.6,
            "measured_mu_interval": (0.4, 0.8),
            "claimed_epsilon": 4.0,
            "claimed_mu": 0.9,
            "confidence": 0.99,
            "view": "released",
            "n_fits": 300,
            "n_canaries": 1,
            "included": np.array([True]),
            "scores": np.array([0.0]),
        }
        return AuditResult(**(values | changes))

    def test_claims_and_bounds(self, ax):
        results = {"one": self.result(), "two": self.result(epsilon=1.0, claimed_epsilon=None)}
        display = draws(AuditDisplay.from_results(results, ax=ax))
        np.testing.assert_array_equal(display.claims_.get_xdata(), [4.0, np.nan])
        np.testing.assert_array_equal(display.bounds_.get_xdata(), [2.0, 1.0])
        np.testing.assert_array_equal(display.gaussian_bounds_.get_xdata(), [3.0, 3.0])
        assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["one", "two"]
        assert legend(display)[0] == "claim at δ = 1e-5" and "99%" in legend(display)[1]
        markers = [display.claims_, display.bounds_, display.gaussian_bounds_]
        assert len({line.get_marker() for line in markers}) == 3
        assert list(AuditDisplay.from_results(self.result(), ax=ax).results) == ["view 'released'"]

    def test_audits_of_different_deltas_are_refused(self, ax):
        with pytest.raises(ValueError, match="delta"):
            AuditDisplay.from_results({"a": self.result(), "b": self.result(delta=1e-6)}, ax=ax)
        with pytest.raises(ValueError, match="results is empty"):
            AuditDisplay.from_results({})


def test_colours_suit_any_colour_vision(fitted, ax):
    display = PerInstanceDisplay.from_estimators({"a": fitted, "b": fitted}, ax=ax)
    assert [to_hex(line.get_color()).upper() for line in display.lines_.values()] == list(OKABE_ITO[:2])


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"install skmixdp\[plot\], or '\.\[plot\]' in a checkout\.$"):
        PublicWeightDisplay._drawn(None, steps=[{"step": 1, "public_weight": 0.5}])


def test_every_display_has_the_attributes_of_scikit_learns():
    displays = [getattr(inspection, name) for name in inspection.__all__ if name.endswith("Display")]
    assert len(displays) == 9
    for display in displays:
        makers = [name for name in dir(display) if name.startswith("from_")]
        assert makers and callable(display.plot)
        assert "figure_ : matplotlib" in display.__doc__
        # Several panels have axes_, as in scikit-learn's PartialDependenceDisplay.
        assert (
            "ax_ : matplotlib Axes" in display.__doc__ or "axes_ : list of matplotlib Axes" in display.__doc__
        )
