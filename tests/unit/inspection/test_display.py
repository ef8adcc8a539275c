import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from skmixdp.inspection import PrivacyUtilityDisplay
from tests.rounding import assert_close

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def results():
    """Two private methods at two epsilons, three fits each, and two without budget."""
    rng = np.random.default_rng(0)
    rows = [
        {"method": method, "epsilon": epsilon, "accuracy": base + 0.01 * rng.standard_normal()}
        for method, base in (("b-first", 0.9), ("a-second", 0.8))
        for epsilon in (3.0, 0.5)
        for _ in range(3)
    ]
    rows += [{"method": "public", "epsilon": None, "accuracy": score} for score in (0.70, 0.72)]
    rows += [{"method": "free", "epsilon": np.inf, "accuracy": 0.96}]
    return rows


def draw(rows, **options):
    return PrivacyUtilityDisplay.from_results(rows, ax=Figure(layout="constrained").subplots(), **options)


def test_curves_are_means_in_percent_by_ascending_epsilon():
    display = draw(results())
    frame = pd.DataFrame(results())
    line = display.lines_["b-first"]
    means = frame[frame["method"] == "b-first"].groupby("epsilon")["accuracy"].mean()
    np.testing.assert_array_equal(line.get_xdata(), [0.5, 3.0])
    assert_close(line.get_ydata(), 100 * means.to_numpy())
    assert list(display.summary["method"].unique()) == ["b-first", "a-second", "public", "free"]
    assert set(display.errorbars_) == {"b-first", "a-second"}


def test_missing_and_infinite_epsilons_are_horizontal_lines_with_a_name():
    display = draw(results())
    for name, score in (("public", 71), ("free", 96)):
        assert_close(display.lines_[name].get_ydata(), [score, score])
        assert name in [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("spread", ["std", "t95"])
def test_error_bars_are_what_the_axis_says(spread):
    display = draw(results(), spread=spread)
    frame = pd.DataFrame(results())
    scores = 100 * frame[(frame["method"] == "a-second") & (frame["epsilon"] == 0.5)]["accuracy"].to_numpy()
    half = np.std(scores, ddof=1)
    if spread == "t95":
        half = np.diff(stats.t.interval(0.95, 2, scale=half / np.sqrt(3)))[0] / 2
    (bars,) = display.errorbars_["a-second"].lines[2]
    low, high = bars.get_segments()[0][:, 1]
    assert_close([low, high], [scores.mean() - half, scores.mean() + half])
    assert {"std": "standard deviation", "t95": "95% interval"}[spread] in display.ax_.get_ylabel()


def test_nothing_drawn_lies_outside_the_axes_limits():
    display = draw(results())
    bottom, top = display.ax_.get_ylim()
    assert bottom < 100 * display.summary["low"].min()
    assert top > 100 * display.summary["high"].max()


def test_curves_differ_in_colour_marker_and_stroke_and_references_in_stroke():
    rows = [{"method": f"m{i}", "epsilon": 1.0, "accuracy": 0.9} for i in range(5)]
    rows += [{"method": f"r{i}", "epsilon": None, "accuracy": 0.9} for i in range(3)]
    lines = draw(rows).lines_
    curves = [lines[f"m{i}"] for i in range(5)]
    references = [lines[f"r{i}"] for i in range(3)]
    assert len({to_hex(line.get_color()) for line in curves}) == 5
    assert len({line.get_marker() for line in curves}) == 5
    strokes = {str(line._unscaled_dash_pattern) for line in curves + references}
    assert len(strokes) == 8
    assert {line.get_marker() for line in references} == {"None"}


def test_axes_are_labelled_with_units_and_the_epsilons_present():
    ax = draw(results(), delta=1e-5).ax_
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.5", "3"]
    assert ax.get_xscale() == "log"
    assert not len(ax.get_xticks(minor=True))
    assert "δ = 1e-5" in ax.get_xlabel()
    assert ax.get_ylabel().startswith("Accuracy (%)")


def test_scores_that_are_no_fractions():
    rows = [{"method": "x", "epsilon": e, "log_loss": loss} for e, loss in ((1, 1.5), (2, 1.25))]
    display = draw(rows, score="log_loss", percent=False)
    assert_close(display.lines_["x"].get_ydata(), [1.5, 1.25])
    assert display.ax_.get_ylabel().startswith("Log loss\n")
    assert "δ" not in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match=r"'log_loss' averages 1.5; pass percent=False"):
        draw(rows, score="log_loss")


def test_plot_makes_a_figure_and_draws_again_elsewhere():
    display = PrivacyUtilityDisplay.from_results(pd.DataFrame(results()))
    first = display.figure_
    ax = Figure().subplots()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is not first


def changed(**cells):
    rows = results()
    rows[1] = {**rows[1], **cells}
    return rows


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        (results(), {"score": "auc"}, ValueError, r"the table has no column 'auc' but"),
        ([], {}, ValueError, r"the table has no column 'method' but \[\]"),
        (7, {}, TypeError, r"table of type int cannot be read as a table; pass a pandas DataFrame"),
        (changed(accuracy=np.nan), {}, ValueError, r"has 'nan' in column 'accuracy' and row 1"),
        (changed(accuracy="high"), {}, ValueError, r"has 'high' in column 'accuracy' and row 1"),
        (changed(accuracy=-np.inf), {}, ValueError, r"has '-inf' in column 'accuracy' and row 1"),
        (changed(epsilon=0.0), {}, ValueError, r"has '0\.0' in column 'epsilon' and row 1"),
        (changed(epsilon=-np.inf), {}, ValueError, r"fix it to a positive number, or leave it empty"),
        (changed(epsilon="tiny"), {}, ValueError, r"has 'tiny' in column 'epsilon' and row 1"),
        (
            changed(method=None),
            {},
            ValueError,
            r"has 'nan' in column 'method' and row 1, counted from 0; name",
        ),
        (changed(method="free"), {}, ValueError, r"method 'free' has rows with and rows without"),
        (results()[-1:], {}, ValueError, r"no row with a finite epsilon"),
        (results(), {"spread": "iqr"}, ValueError, r"spread='iqr' must be 'std' or 't95'"),
    ],
)
def test_bad_tables_get_one_sentence(rows, options, error, message):
    with pytest.raises(error, match=message) as caught:
        draw(rows, **options)
    assert "\n" not in str(caught.value)
