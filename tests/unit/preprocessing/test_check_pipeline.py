"""check_pipeline names every step that would learn from private rows, and only those."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
    scale,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import all_estimators

import skmixdp.model_selection
import skmixdp.preprocessing
from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.algorithms import PAZO
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.model_selection import PrivateSearchCV, WithPublicRows, public_score
from skmixdp.preprocessing import NoisyScaler, PublicOnly, PublicWhitener, RowNormalizer, check_pipeline
from tests.private_names import DROPS_FITS, LEARNS, META_LEARNS, ONLY_PARTS

HEAD = MixedDPLogisticRegression()
PUBLIC = public_score([[0.0], [1.0]], [0, 1])


def found(pipe, kind="leak", **options):
    """Paths and classes of the findings of one kind."""
    return [(finding.path, finding.step) for finding in check_pipeline(pipe, **options).of_kind(kind)]


def routed(*steps):
    return make_pipeline(*steps, HEAD, transform_input=["X_pub"])


def name_of(step):
    """Without addresses, which differ between the workers of a test run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(step))


SAFE = [
    PublicOnly(StandardScaler()),
    PublicOnly(ColumnTransformer([("s", StandardScaler(), [0])])),
    PublicWhitener(),
    NoisyScaler(bounds=(0, 1)),
    RowNormalizer(),
    Normalizer(),
    FunctionTransformer(np.tanh),
    FunctionTransformer(),
    PolynomialFeatures(2),
    GaussianRandomProjection(2),
    RBFSampler(gamma=0.1),
    FrozenEstimator(StandardScaler()),
    OneHotEncoder(categories=[["a", "b"]]),
    "passthrough",
    None,
]


@pytest.mark.parametrize("step", SAFE, ids=name_of)
def test_nothing_is_found_behind_a_safe_step(step):
    assert list(check_pipeline(routed(step))) == []


LEAKING = [
    StandardScaler(),
    MinMaxScaler(),
    OneHotEncoder(),
    OneHotEncoder(categories=[["a", "b"]], min_frequency=2),
    TargetEncoder(),
    SimpleImputer(),
    SelectKBest(),
    PCA(2),
    Nystroem(),
    RBFSampler(gamma="scale"),
    FunctionTransformer(scale),
    SequentialFeatureSelector(HEAD),
]


@pytest.mark.parametrize("step", LEAKING, ids=name_of)
def test_a_step_that_looks_at_rows_is_found(step):
    assert found(routed(step)) == [(type(step).__name__.lower(), type(step).__name__)]


def test_what_no_rule_knows_is_found():
    class Homemade(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

    class NoEstimator:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X

    class Resampler(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def fit_resample(self, X, y):
            return X, y

    for step in (Homemade(), NoEstimator(), Resampler()):
        assert found(routed(step)) == [(type(step).__name__.lower(), type(step).__name__)]


def test_heads_and_other_estimators_with_a_budget_are_paid_for():
    for head in (HEAD, MixedDPRidge(), MixedDPLogisticRegression(PAZO("m"))):
        assert list(check_pipeline(head)) == []
    assert found(LogisticRegression()) == [("", "LogisticRegression")]
    assert found(make_pipeline(RowNormalizer(), Ridge()), public_rows=False) == [("ridge", "Ridge")]


def test_what_an_estimator_with_a_budget_searches_over_is_looked_into():
    class PaidSearch(BaseEstimator):
        def __init__(self, estimator=None, epsilon=1.0, delta=1e-5):
            self.estimator, self.epsilon, self.delta = estimator, epsilon, delta

        def fit(self, X, y):
            return self

    assert found(PaidSearch(routed(StandardScaler()))) == [("estimator__standardscaler", "StandardScaler")]
    assert found(PaidSearch(routed(RowNormalizer()))) == []


def test_paths_are_those_of_set_params():
    columns = ColumnTransformer([("encode", OneHotEncoder(), [0])], remainder=MinMaxScaler())
    union = FeatureUnion([("pca", PCA()), ("unit", RowNormalizer())])
    inner = Pipeline([("columns", columns), ("union", union), ("clf", HEAD)])
    pipe = Pipeline([("scale", StandardScaler()), ("inner", inner)], transform_input=["X_pub"])
    paths = [path for path, _ in found(pipe)]
    assert sorted(paths) == [
        "inner__columns__encode",
        "inner__columns__remainder",
        "inner__union__pca",
        "scale",
    ]
    assert set(paths) <= set(pipe.get_params(deep=True))


class TestMetaEstimators:
    @pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
    def test_searches_score_on_private_rows(self, kind):
        search = kind(routed(PublicOnly(PCA())), {"pca": [1]})
        assert found(search) == [("", kind.__name__)]

    def test_candidates_of_a_search_are_looked_at(self):
        grid = [
            {"s": [StandardScaler(), PublicOnly(StandardScaler()), "passthrough"]},
            {"clf__epsilon": [1.0]},
        ]
        pipe = Pipeline([("s", "passthrough"), ("clf", HEAD)], transform_input=["X_pub"])
        assert found(GridSearchCV(pipe, grid))[1:] == [("param_grid[s]", "StandardScaler")]

    def test_calibration(self):
        report = check_pipeline(CalibratedClassifierCV(HEAD))
        assert "calibration" in report.of_kind("leak")[0].learns
        assert "the set of labels" in report.of_kind("note")[0].learns

    def test_thresholds(self):
        assert found(TunedThresholdClassifierCV(HEAD)) == [("", "TunedThresholdClassifierCV")]

    def test_bootstrap_repeats_rows(self):
        assert found(BaggingClassifier(HEAD)) == [("", "BaggingClassifier")]
        assert found(BaggingClassifier(HEAD, bootstrap=False)) == []
        (finding,) = check_pipeline(BaggingClassifier(bootstrap=False)).of_kind("leak")
        assert "estimator=None" in finding.learns

    def test_final_estimators(self):
        parts = [("a", HEAD), ("b", LogisticRegression())]
        stack = StackingClassifier(parts, final_estimator=HEAD, cv=KFold(3))
        assert found(stack) == [("b", "LogisticRegression")]
        (first, _) = check_pipeline(StackingClassifier(parts, cv=KFold(3))).of_kind("leak")
        assert "final_estimator=None" in first.learns

    @pytest.mark.parametrize("meta", [VotingClassifier([("a", HEAD)]), OneVsRestClassifier(HEAD)])
    def test_label_encoders_are_noted(self, meta):
        assert found(meta) == [] and found(meta, "note") == [("", type(meta).__name__)]

    @pytest.mark.parametrize("meta", [MultiOutputClassifier(HEAD), SelectFromModel(HEAD)])
    def test_containers_that_add_nothing(self, meta):
        assert list(check_pipeline(meta)) == []

    @pytest.mark.parametrize(
        "meta",
        [
            StackingClassifier([("a", HEAD)], HEAD, cv=KFold(3)),
            RFE(HEAD),
            ClassifierChain(HEAD, cv=KFold(3)),
            GridSearchCV(HEAD, {}, scoring=PUBLIC, cv=KFold(2)),
            GridSearchCV(HEAD, {}, scoring={"a": PUBLIC, "b": PUBLIC}, cv=[(range(9), [0])]),
        ],
        ids=name_of,
    )
    def test_fits_that_are_dropped_are_no_leak_but_are_not_counted(self, meta):
        assert found(meta) == [] and found(meta, "uncounted") == [("", type(meta).__name__)]
        (words,) = check_pipeline(meta).in_words("uncounted")
        assert words.startswith(f"{type(meta).__name__}: drops fits") and "ledger" in words

    @pytest.mark.parametrize(
        "meta", [StackingClassifier([("a", HEAD)], HEAD, cv="prefit"), ClassifierChain(HEAD)], ids=name_of
    )
    def test_nothing_is_dropped_without_folds(self, meta):
        assert found(meta) == found(meta, "uncounted") == []

    @pytest.mark.parametrize(
        "meta",
        [
            StackingClassifier([("a", HEAD)], HEAD),
            StackingClassifier([("a", HEAD)], HEAD, cv=StratifiedKFold(3)),
            ClassifierChain(HEAD, cv=2),
            GridSearchCV(HEAD, {}, scoring=PUBLIC),
        ],
        ids=name_of,
    )
    def test_folds_drawn_by_labels_are_a_leak(self, meta):
        (finding,) = check_pipeline(meta).of_kind("leak")
        assert "stratified by private labels" in finding.learns and "KFold" in finding.fix

    def test_one_label_moves_rows_of_others_to_other_folds(self):
        y = np.arange(90) % 3
        other = y.copy()
        other[3] = 1
        folds = [list(StratifiedKFold(3).split(y, labels)) for labels in (y, other)]
        assert sum(len(set(a[1]) - set(b[1])) for a, b in zip(*folds, strict=True)) == 4

    def test_folds_of_a_regression_are_not(self):
        assert found(StackingRegressor([("a", MixedDPRidge())], MixedDPRidge())) == []

    def test_a_score_on_private_rows_next_to_a_public_one(self):
        both = {"a": PUBLIC, "b": "accuracy"}
        assert "the scores of candidates" in check_pipeline(GridSearchCV(HEAD, {}, scoring=both))[0].learns

    def test_one_versus_one_counts_classes(self):
        (finding,) = check_pipeline(OneVsOneClassifier(HEAD)).of_kind("leak")
        assert "how many rows each class has" in finding.learns
        X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) // 20
        head = MixedDPLogisticRegression("noisy-gd", classes=[0, 1], delta=1e-3)
        with pytest.warns(PrivacyLeakWarning, match="how many rows each class has"):
            members = OneVsOneClassifier(head).fit(X[:50], y[:50]).estimators_
        assert [member.privacy_.n_private for member in members] == [40, 30, 30]  # 20, 20 and 10 rows

    def test_self_training(self):
        (finding,) = check_pipeline(SelfTrainingClassifier(HEAD)).of_kind("leak")
        assert "labels that it gives to private rows" in finding.learns

    def test_candidates_of_a_private_search_are_looked_at(self):
        pipe = Pipeline([("s", "passthrough"), ("clf", HEAD)], transform_input=["X_pub"])
        candidates = [StandardScaler(), "passthrough"]
        for listed in (candidates, np.array(candidates, dtype=object)):
            assert found(PrivateSearchCV(pipe, {"s": listed})) == [("param_grid[s]", "StandardScaler")]
        assert found(PrivateSearchCV(pipe, {"clf__l2": [0.0, 1.0]})) == []

    def test_target_transformers_are_fitted_on_targets(self):
        meta = TransformedTargetRegressor(MixedDPRidge(), transformer=StandardScaler())
        (finding,) = check_pipeline(meta)
        assert finding.path == "transformer" and "target_scale" in finding.fix


class TestPublicRows:
    def test_nothing_to_transform(self):
        table = pd.DataFrame({"fit": [0.0, 1.0], "transform": [1.0, 0.0]})  # no estimator
        for pipe in (
            make_pipeline(HEAD),
            make_pipeline("passthrough", HEAD),
            WithPublicRows(HEAD, table, [0, 1]),
        ):
            assert list(check_pipeline(pipe)) == []

    def test_a_head_behind_a_step_needs_transform_input(self):
        for step in (PublicOnly(PCA()), RowNormalizer()):
            assert found(make_pipeline(step, HEAD), "public rows") == [("", "Pipeline")]
            assert found(make_pipeline(step, HEAD), "public rows", public_rows=False) == []
            assert found(routed(step), "public rows") == []
        search = GridSearchCV(HEAD, {"epsilon": [1.0]})
        assert found(make_pipeline(RowNormalizer(), search), "public rows") == [("", "Pipeline")]

    def test_so_does_a_public_step_behind_a_step(self):
        pipe = make_pipeline(RowNormalizer(), PublicOnly(PCA()), LogisticRegression())
        (finding,) = check_pipeline(pipe).of_kind("public rows")
        assert finding.learns.startswith("publiconly gets") and "transform_input=['X_pub']" in finding.fix

    def test_an_inner_pipeline_needs_its_own(self):
        pipe = routed(RowNormalizer()).set_params(
            mixeddplogisticregression=make_pipeline(PublicOnly(PCA()), HEAD)
        )
        assert found(pipe, "public rows") == [("mixeddplogisticregression", "Pipeline")]

    def test_inside_a_column_transformer_they_do_not_arrive(self):
        columns = ColumnTransformer([("s", PublicOnly(StandardScaler()), [0])])
        assert found(routed(columns), "public rows") == [("columntransformer__s", "PublicOnly")]


def test_a_cache_is_noted():
    pipe = routed(RowNormalizer()).set_params(memory="folder")
    (finding,) = check_pipeline(pipe)
    assert finding.kind == "note" and "on disk" in finding.learns


class TestWords:
    REPORT = check_pipeline(make_pipeline(StandardScaler(), CalibratedClassifierCV(HEAD)))

    def test_it_prints_every_finding(self):
        text = str(self.REPORT)
        assert text.startswith("Pipeline check\n") and len(self.REPORT) == 4
        for finding in self.REPORT:
            assert finding.learns in text and finding.fix in text and finding.step in text
        assert str(self.REPORT.of_kind("leak")[0]).startswith("standardscaler (StandardScaler): the mean and")
        assert str(check_pipeline(LogisticRegression())[0]).startswith("LogisticRegression: a model")

    def test_html_is_escaped(self):
        class Odd(BaseEstimator):
            def fit(self, X, y=None):
                return self

        report = check_pipeline(Pipeline([("<b>", Odd())]))
        assert "&lt;b&gt;" in report._repr_html_() and "<b>" not in report._repr_html_()

    def test_nothing_found_claims_no_more_than_was_looked_at(self):
        report = check_pipeline(HEAD)
        assert "no step is known to learn" in str(report) and "known" in report._repr_html_()

    def test_it_is_a_sequence(self):
        assert self.REPORT[0] in self.REPORT and len(self.REPORT[1:]) == 3 and not check_pipeline(HEAD)


def test_nothing_is_fitted_or_changed():
    class Untouched(StandardScaler):
        def fit(self, X, y=None):
            raise AssertionError

    pipe = routed(Untouched())
    before = repr(pipe)
    check_pipeline(pipe)
    assert repr(pipe) == before


def test_every_class_that_the_rules_name_exists():
    known = {name for name, _ in all_estimators()}
    known.add("IterativeImputer")  # scikit-learn shows it only where it was asked for
    known |= {*skmixdp.preprocessing.__all__, *skmixdp.model_selection.__all__}
    bases = {"BaseSearchCV": GridSearchCV, "BaseWeightBoosting": AdaBoostClassifier}
    assert {*LEARNS, *META_LEARNS, *ONLY_PARTS, *DROPS_FITS} - known == set(bases)
    for base, child in bases.items():
        assert base in {kind.__name__ for kind in child.__mro__}
