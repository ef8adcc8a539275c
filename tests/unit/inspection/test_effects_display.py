"""The display of the curves of an additive model."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor, MixedDPRidge, private_pipeline
from skmixdp.inspection import EffectsDisplay
from skmixdp.preprocessing import TableEncoder
from skmixdp.privacy import PrivacyLeakWarning
from tests.private_names import OKABE_ITO

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=8000), RNG.integers(0, 2, 8000), RNG.uniform(size=8000)])
OUTPUT = np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def reg():
    return AdditiveDPRegressor(epsilon=3.0, target_scale=1.0, random_state=0).fit(X, OUTPUT)


@pytest.fixture(scope="module")
def clf():
    y = (OUTPUT > 0).astype(int) + (OUTPUT > 1)
    return AdditiveDPClassifier(epsilon=3.0, classes=[0, 1, 2], random_state=0).fit(X, y)


def test_curves_are_those_of_the_model_and_bands_those_of_the_noise(reg):
    display = EffectsDisplay.from_estimator(reg)
    display.figure_.draw_without_rendering()
    assert list(display.lines_)[:2] in (["x0", "x1"], ["x1", "x0"])
    values, effects, errors = display.curves["x0"]
    drawn = np.interp(reg.knots_[0][2:-2], values, effects[:, 0])
    np.testing.assert_allclose(drawn, reg.effects_[0][2:-2, 0], atol=1e-9)
    (line,) = display.lines_["x0"]
    np.testing.assert_array_equal(line.get_ydata(), effects[:, 0])
    (band,) = display.axes_[list(display.lines_).index("x0")].collections
    heights = np.ptp(band.get_paths()[0].vertices[:, 1])
    assert heights >= 2 * 1.95 * errors.min()
    assert "units of the prediction" in display.axes_[0].get_ylabel()


def test_columns_of_two_values_are_points(reg):
    display = EffectsDisplay.from_estimator(reg, columns=[1])
    (line,) = display.lines_["x1"]
    assert len(line.get_xdata()) == 2
    assert line.get_linestyle() == "None"


def test_each_class_has_a_colour(clf):
    display = EffectsDisplay.from_estimator(clf, columns=["b"], feature_names=["a", "b", "c"])
    assert [to_hex(line.get_color()).upper() for line in display.lines_["b"]] == list(OKABE_ITO[:3])
    assert [text.get_text() for text in display.axes_[0].get_legend().get_texts()] == ["0", "1", "2"]


def test_given_axes_are_used(reg):
    axes = Figure().subplots(1, 2)
    display = EffectsDisplay.from_estimator(reg, columns=[0, 2], ax=axes)
    assert display.axes_ == list(axes)
    with pytest.raises(ValueError, match="ax has 2 axes; pass one for each of"):
        display.__class__.from_estimator(reg, columns=[0], ax=axes)


def test_notebooks_show_a_table_with_escaped_names(reg):
    display = EffectsDisplay.from_estimator(reg, feature_names=["<b>", "sex", "other"])
    text = display._repr_html_()
    assert "&lt;b&gt;" in text
    assert text.count("<tr>") == 4
    assert "95% interval of the noise" in text


def test_a_pipeline_names_the_columns_that_the_model_gets():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "sex", "share"])
    encoder = TableEncoder({"age": "number", "sex": "number", "share": "number"})
    head = AdditiveDPRegressor(epsilon=3.0, target_scale=1.0, random_state=0)
    model = private_pipeline(encoder, head).fit(frame, OUTPUT)
    display = EffectsDisplay.from_estimator(model)
    assert all(any(name in column for name in frame) for column in display.lines_)


@pytest.mark.parametrize("columns", [["z"], [3], [-1], [[0]]])
def test_unknown_columns_are_refused(reg, columns):
    with pytest.raises(ValueError, match=r"columns has .*; pass names or numbers among"):
        EffectsDisplay.from_estimator(reg, columns=columns)


def test_other_models_and_wrong_names_are_refused(reg):
    with pytest.raises(TypeError, match="MixedDPRidge, which has no effects"):
        EffectsDisplay.from_estimator(MixedDPRidge())
    with pytest.raises(ValueError, match="feature_names has 1 names and the model 3 columns"):
        EffectsDisplay.from_estimator(reg, feature_names=["a"])


def test_the_table_says_first_what_leaked():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    with pytest.warns(PrivacyLeakWarning):
        clf = AdditiveDPClassifier(epsilon=8.0).fit(X, y)
    text = EffectsDisplay.from_estimator(clf)._repr_html_()
    assert text.startswith("<p><b>NO GUARANTEE: the classes were read from the private labels</b></p><table>")
