import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from skmixdp.inspection import LedgerDisplay
from skmixdp.privacy import GaussianEvent, PrivacyLedger
from tests.rounding import assert_close

mpl.use("Agg")


@pytest.fixture
def ledger():
    ledger = PrivacyLedger(":memory:")
    ledger.add_dataset("b", epsilon=1.0, delta=1e-6)
    ledger.add_dataset("idle", epsilon=1.0, delta=1e-6)
    ledger.add_dataset("a", epsilon=3.0, delta=1e-5)
    for dataset in "aaba":
        ledger[dataset].charge(
            GaussianEvent(40.0, 5), neighboring="add_or_remove_one", private=dataset == "a"
        )
    return ledger


def draw(ledger, **options):
    display = LedgerDisplay.from_ledger(ledger, ax=Figure(layout="constrained").subplots(), **options)
    display.figure_.draw_without_rendering()
    return display


def test_steps_are_the_shares_spent_after_each_charge(ledger):
    display = draw(ledger, over="charges")
    assert list(display.lines_) == ["b", "a"]
    assert list(draw(ledger["b"], over="charges").lines_) == ["b"]
    spent = [charge.spent for charge in ledger["a"].charges()]
    line = display.lines_["a"]
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    assert_close(line.get_ydata(), 100 * np.array(spent) / 3)
    assert line.get_drawstyle() == "steps-post"
    assert display.ax_.get_ylim()[0] == 0 and display.ax_.get_ylim()[1] > 100


def test_over_time(ledger):
    display = draw(ledger)
    assert list(display.lines_["a"].get_xdata(orig=True)) == [charge.time for charge in ledger["a"].charges()]
    assert display.ax_.get_xlabel() == "Time of the charge (UTC)"


def test_the_legend_says_what_is_spent_and_what_is_void(ledger):
    words = [text.get_text() for text in draw(ledger).ax_.get_legend().get_texts()]
    assert words == ["b: NO GUARANTEE", f"a: ε {ledger['a'].spent:.3g} of 3 (δ = 1e-5)"]


def test_long_names_leave_the_axes_their_width():
    ledger = PrivacyLedger(":memory:")
    for name in ("a", "members of all clubs, branches North and South (2024 to 2026)"):
        ledger.add_dataset(name, epsilon=1.0, delta=1e-6)
        ledger[name].charge(GaussianEvent(40.0, 5), neighboring="add_or_remove_one")
    ax = LedgerDisplay.from_ledger(ledger).ax_
    ax.figure.draw_without_rendering()
    assert ax.get_position().width > 0.7


def test_many_charges_have_no_markers(ledger):
    for _ in range(30):
        ledger["a"].charge(GaussianEvent(1000.0, 1), neighboring="add_or_remove_one")
    lines = draw(ledger).lines_
    assert lines["a"].get_marker() == "None" and lines["b"].get_marker() == "o"


def test_a_figure_of_its_own(ledger):
    import matplotlib.pyplot as plt

    display = LedgerDisplay.from_ledger(ledger)
    assert display.figure_ is plt.gcf()
    plt.close("all")


def test_refusals(ledger):
    with pytest.raises(ValueError, match="over='days' must be 'time' or 'charges'"):
        draw(ledger, over="days")
    with pytest.raises(ValueError, match="the ledger holds no charge yet"):
        draw(PrivacyLedger(":memory:"))
