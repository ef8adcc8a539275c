"""The display of the curves of an additive model."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from matplotlib.colors import to_hex
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from skmixdp import AdditiveDPClassifier, AdditiveDPRegressor, MixedDPRidge, load, private_pipeline
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.inspection import EffectsDisplay
from skmixdp.preprocessing import PublicOnly, TableEncoder
from tests.private_names import OKABE_ITO

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=8000), RNG.integers(0, 2, 8000), RNG.uniform(size=8000)])
OUTPUT = np.sin(2 * X[:, 0]) + X[:, 1]


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


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
    assert display.figure_._supylabel.get_text() == "Effect (units of the prediction)"


def test_columns_of_two_values_are_bars(reg):
    display = EffectsDisplay.from_estimator(reg, columns=[1])
    (bars,) = display.lines_["x1"]
    assert [bar.get_height() for bar in bars] == display.curves["x1"][1][:, 0].tolist()
    assert list(display.curves["x1"][0]) == names_of(display.axes_[0]) == ["0", "1"]


def names_of(axes):
    return [label.get_text() for label in axes.get_xticklabels()]


def test_each_class_has_a_colour(clf):
    display = EffectsDisplay.from_estimator(clf, columns=[0])
    assert [to_hex(line.get_color()).upper() for line in display.lines_["x0"]] == list(OKABE_ITO[:3])
    assert [text.get_text() for text in display.figure_.legends[0].get_texts()] == ["0", "1", "2"]


def test_notebooks_show_a_table_with_escaped_names(reg):
    display = EffectsDisplay.from_estimator(reg)
    display.importances["<b>"] = display.importances.pop("x0")
    text = display._repr_html_()
    assert "&lt;b&gt;" in text
    assert text.count("<tr>") == 4
    assert "95% interval of the noise" in text


N = 6000
TABLE = pandas.DataFrame(
    {
        "age": RNG.uniform(18, 80, N),
        "hired": pandas.Timestamp("2015-01-01") + pandas.to_timedelta(RNG.integers(0, 3000, N), "D"),
        "city": RNG.choice(["Bonn", "Ulm", "Rome"], N, p=[0.6, 0.3, 0.1]),
        "member": RNG.random(N) < 0.3,
        "note": RNG.choice(["good", "bad", "fair"], N),
        "id": np.arange(N),
    }
)
TABLE.loc[RNG.random(N) < 0.2, "city"] = None
TABLE.loc[RNG.random(N) < 0.2, "age"] = np.nan
TARGET = np.array(
    (TABLE["age"].fillna(30) - 50) / 10
    + 2.0 * (TABLE["city"] == "Rome")
    - 3.0 * TABLE["city"].isna()
    + TABLE["member"]
    + (TABLE["hired"] - TABLE["hired"].min()).dt.days / 1000
)
KINDS = {
    "age": (18, 80),
    "hired": "date",
    "city": ["Bonn", "Ulm", "Rome"],
    "member": "boolean",
    "note": "text",
    "id": "drop",
}


@pytest.fixture(scope="module", params=["declared", "public"])
def model(request):
    head = AdditiveDPRegressor(epsilon=20.0, target_center=0.0, target_scale=3.0, random_state=0)
    if request.param == "declared":
        encoder = TableEncoder(KINDS, n_hashed=32, indicators=["age", "city"])
        return private_pipeline(encoder, head).fit(TABLE, TARGET)
    public = slice(0, 500)
    encoder = TableEncoder({"note": "text", "id": "drop"}, n_hashed=32)
    return private_pipeline(encoder, head).fit(
        TABLE[500:], TARGET[500:], X_pub=TABLE[public], y_pub=TARGET[public]
    )


def test_each_column_of_a_frame_has_a_panel_in_the_units_of_its_cells(model):
    display = EffectsDisplay.from_estimator(model)
    display.figure_.draw_without_rendering()
    assert list(display.lines_) == list(display.importances) == list(model.importances_.index)
    assert set(display.lines_) == {"age", "hired", "city", "member", "note"}
    panels = dict(zip(display.lines_, display.axes_, strict=True))
    ages, effects, _ = display.curves["age"]
    assert 18 <= np.nanmin(ages) < 22 and 76 < np.nanmax(ages) <= 80
    rising = np.polyfit(ages[:-1], effects[:-1, 0], 1)[0]
    assert rising == pytest.approx(0.1, rel=0.1)
    days, effects, _ = display.curves["hired"]
    assert np.datetime64("2015-01-01") <= days[0] < np.datetime64("2015-06-01")
    assert np.datetime64("2022-11-01") < days[-1] < np.datetime64("2023-04-01")
    assert np.polyfit((days - days[0]) / np.timedelta64(1000, "D"), effects[:, 0], 1)[0] == pytest.approx(
        1, rel=0.15
    )
    assert "time of the week: up to" in panels["hired"].get_xlabel()
    effects = dict(zip(display.curves["city"][0], display.curves["city"][1][:, 0], strict=True))
    assert set(names_of(panels["city"])) == {"Bonn", "Ulm", "Rome", "missing"}
    assert effects["Rome"] - effects["Bonn"] == pytest.approx(2, abs=0.5)
    assert effects["missing"] - effects["Bonn"] == pytest.approx(-3, abs=0.5)
    low, high = display.curves["member"][1][:2, 0]
    assert high - low == pytest.approx(1, abs=0.3)


def test_missing_numbers_have_a_bar_of_their_own(model):
    display = EffectsDisplay.from_estimator(model, columns=["age"])
    cells, effects, _ = display.curves["age"]
    assert np.flatnonzero(np.isnan(cells)).tolist() == [len(cells) - 1]
    at_30 = np.interp(30, cells[:-1], effects[:-1, 0])
    assert effects[-1, 0] == pytest.approx(at_30, abs=0.5)
    assert [text.get_text() for text in display.axes_[0].texts] == ["missing"]
    assert [bar.get_height() for bar in display.axes_[0].patches] == [effects[-1, 0]]


def test_missing_values_of_an_array_have_a_bar_too():
    rows = X.copy()
    rows[::4, 0] = np.nan
    reg = AdditiveDPRegressor(epsilon=5.0, target_scale=1.0, random_state=0).fit(rows, np.isnan(rows[:, 0]))
    cells, effects, _ = EffectsDisplay.from_estimator(reg, columns=[0]).curves["x0"]
    assert np.isnan(cells[-1]) and effects[-1, 0] > effects[:-1, 0].max() + 0.5


def test_parts_of_a_row_are_those_of_the_columns_of_the_frame(model):
    parts = model.explain(TABLE[100:110])
    assert list(parts.columns) == ["age", "hired", "city", "member", "note"]
    assert list(parts.index) == list(TABLE.index[100:110])
    whole = parts.sum(axis=1) + model[-1].intercept_
    np.testing.assert_allclose(whole, model.predict(TABLE[100:110]), atol=1e-9)
    sure = model.explain(TABLE[:300])["city"].groupby(TABLE["city"][:300], dropna=False).mean()
    assert sure["Rome"] - sure["Bonn"] == pytest.approx(2, abs=0.5)


def test_importances_are_standard_deviations_of_the_columns_of_the_frame(model):
    spread = model.explain(TABLE).std()
    for name in ("age", "hired", "city", "member"):
        assert model.importances_[name] == pytest.approx(spread[name], rel=0.15)
    assert list(model.importances_) == sorted(model.importances_, reverse=True)
    assert model.importances_["note"] < 0.25 * model.importances_["age"]


def test_shares_of_public_rows_tell_how_categories_are_distributed():
    city = np.where(np.arange(4000) % 20, "often", "rarely")
    frame, y = pandas.DataFrame({"city": city, "age": RNG.normal(size=4000)}), 10.0 * (city == "rarely")
    head = AdditiveDPRegressor(epsilon=20.0, target_center=0.0, target_scale=3.0, random_state=0)
    model = private_pipeline(TableEncoder(), head).fit(frame[400:], y[400:], X_pub=frame[:400], y_pub=y[:400])
    assert model.importances_["city"] == pytest.approx(10 * np.sqrt(0.05 * 0.95), rel=0.15)


def test_the_caption_says_how_many_columns_are_left_out(reg, model):
    display = EffectsDisplay.from_estimator(reg, columns=[0])
    assert display.figure_._supxlabel.get_text() == "1 of 3 columns; left out: 2"
    assert display._repr_html_().count("<tr>") == 1 + 3
    assert EffectsDisplay.from_estimator(model).figure_._supxlabel is None


def test_several_outputs_and_pairs_are_named(clf):
    frame = pandas.DataFrame(X[:3000], columns=["a", "b", "c"]).assign(
        b=np.where(X[:3000, 1] > 0, "high", "low")
    )
    encoder = TableEncoder({"a": "number", "b": ["low", "high"], "c": "number"})
    head = AdditiveDPClassifier(
        epsilon=8.0, classes=["no", "so", "yes"], interactions=[("a", "b")], random_state=0
    )
    labels = np.array(["no", "so", "yes"])[(OUTPUT[:3000] > 0).astype(int) + (OUTPUT[:3000] > 1)]
    model = private_pipeline(encoder, head).fit(frame, labels)
    parts = model.explain(frame[:5])
    assert list(parts["so"].columns) == ["a", "b", "c", "a x b"]
    whole = parts.T.groupby(level=0).sum().T + model[-1].intercept_
    np.testing.assert_allclose(whole, model.decision_function(frame[:5]), atol=1e-9)
    display = EffectsDisplay.from_estimator(model, columns=["b"])
    assert [len(bars) for bars in display.lines_["b"]] == [2, 2, 2]


def test_many_and_long_categories_are_cut():
    many = [f"{'a long name of a city ' * (j == 0)}{j}" for j in range(40)]
    curves = {"city": (np.array(many, dtype=object), np.linspace(0, 1, 40)[:, None], np.zeros((40, 1)))}
    display = EffectsDisplay()
    display.curves, display.importances, display.outputs, display.unit = curves, {"city": 1.0}, ["0"], "euros"
    display.notes = {}
    display.plot()
    assert "16 of 40, by size" in display.axes_[0].get_xlabel()
    assert names_of(display.axes_[0]) == [str(j) for j in range(24, 40)]
    display.curves = {"city": tuple(each[:2] for each in curves["city"])}
    assert names_of(display.plot().axes_[0]) == ["a long name of …", "1"]


def test_pipelines_without_an_encoder_name_the_columns_that_the_model_gets():
    head = AdditiveDPRegressor(epsilon=3.0, target_scale=1.0, random_state=0)
    model = private_pipeline(PublicOnly(StandardScaler()), head).fit(
        X[100:], OUTPUT[100:], X_pub=X[:100], y_pub=OUTPUT[:100]
    )
    assert (
        set(EffectsDisplay.from_estimator(model).lines_)
        == {"x0", "x1", "x2"}
        == set(model.importances_.index)
    )
    assert list(model.explain(X[:3]).columns) == ["x0", "x1", "x2"]


def test_pipelines_of_other_heads_explain_nothing():
    model = private_pipeline(TableEncoder(KINDS), MixedDPRidge())
    assert not hasattr(model, "explain") and not hasattr(model, "importances_")


@pytest.mark.parametrize("columns", [["z"], [3], [-1], [[0]]])
def test_unknown_columns_are_refused(reg, columns):
    with pytest.raises(ValueError, match=r"columns has .*; pass names or numbers among"):
        EffectsDisplay.from_estimator(reg, columns=columns)


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="MixedDPRidge, which has no effects"):
        EffectsDisplay.from_estimator(MixedDPRidge())


def test_what_cannot_be_drawn_is_refused(reg):
    with pytest.raises(ValueError, match=r"columns=\[\] has no column; pass some among"):
        EffectsDisplay.from_estimator(reg, columns=[])
    model = private_pipeline(TableEncoder(KINDS), AdditiveDPRegressor())
    for look in (lambda: model.importances_, lambda: EffectsDisplay.from_estimator(model)):
        with pytest.raises(NotFittedError):
            look()
    with pytest.raises(NotFittedError):
        model.explain(TABLE)


def test_times_of_the_day_are_seconds_and_saved_pipelines_show_the_same(tmp_path):
    seconds = RNG.integers(0, 86_400, 3000)
    times = [f"{at // 3600:02}:{at // 60 % 60:02}" for at in seconds]
    frame = pandas.DataFrame({"at": times, "age": RNG.normal(40, 9, 3000)})
    y = seconds / 86_400
    head = AdditiveDPRegressor(epsilon=20.0, target_center=0.5, target_scale=0.3, random_state=0)
    model = private_pipeline(TableEncoder(), head).fit(frame[200:], y[200:], X_pub=frame[:200], y_pub=y[:200])
    display = EffectsDisplay.from_estimator(model)
    assert display.notes == {"at": "seconds"} and display.curves["at"][0].max() > 70_000
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    pandas.testing.assert_series_equal(loaded.importances_, model.importances_)
    pandas.testing.assert_frame_equal(loaded.explain(frame[:5]), model.explain(frame[:5]))


def test_the_table_says_first_what_leaked():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    with pytest.warns(PrivacyLeakWarning):
        clf = AdditiveDPClassifier(epsilon=8.0).fit(X, y)
    text = EffectsDisplay.from_estimator(clf)._repr_html_()
    assert text.startswith("<p><b>NO GUARANTEE: the classes were read from the private labels</b></p><table>")


@pytest.mark.slow
def test_intervals_of_categories_are_those_of_the_noise_of_training():
    """Over 24 fits that differ in noise alone; stated errors may be too large by the assumed inflation."""
    rng = np.random.default_rng(1)
    city = rng.choice(list("abcdef"), N, p=[0.5, 0.2, 0.15, 0.1, 0.03, 0.02])
    frame = pandas.DataFrame({"age": rng.normal(40, 10, N), "city": city})
    y = (rng.random(N) < 1 / (1 + np.exp((frame["age"] - 40) / 10 - (city == "a")))).astype(int)
    effects, errors = [], []
    for seed in range(24):
        head = AdditiveDPClassifier(epsilon=3.0, random_state=seed)
        model = private_pipeline(TableEncoder(), head)
        model.fit(frame[500:], y[500:], X_pub=frame[:500], y_pub=y[:500])
        _, effect, error = EffectsDisplay.from_estimator(model, columns=["city"]).curves["city"]
        effects.append(effect[:, 0])
        errors.append(error[:, 0])
    ratios = np.mean(errors, axis=0) / np.std(effects, axis=0, ddof=1)
    assert (ratios > 0.8).all() and np.median(ratios) < 8, ratios
