"""Wrappers of scikit-learn: what works, what is refused, and what public rows tell about the targets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.algorithms import PAZO
from skmixdp.exceptions import NotPrivateWarning, PrivacyLeakWarning
from skmixdp.model_selection import WithPublicRows
from skmixdp.preprocessing import PublicOnly, TableEncoder, check_pipeline
from tests.private_names import dotted_path

X, Y = make_regression(1300, 8, noise=10.0, random_state=0)
Y = 3 * Y + 1000
X_PUB, Y_PUB, X_PRIV, Y_PRIV = X[:100], Y[:100], X[100:], Y[100:]
PUBLIC = {"X_pub": X_PUB, "y_pub": Y_PUB}
NEAR = {"delta": 1e-3}


def ridge(**parameters):
    return MixedDPRidge(**{"random_state": 0, **parameters})


#: The warnings of the check of units, and of the fits that have none.
_OTHER_UNITS = "y_pub have another unit or centre|check that y and y_pub are in the same units"


class TestTargetsOfDifferentUnits:
    """The released head and public rows tell it, so no private value is looked at."""

    @pytest.mark.covering
    @pytest.mark.parametrize(
        "change",
        [lambda y: (y - y.mean()) / y.std(), np.log, lambda y: 1000 * y, lambda y: y / 10],
        ids=["standardised", "logarithms", "thousandfold", "a tenth"],
    )
    @pytest.mark.parametrize("algorithm", ["auto", "noisy-gd"])
    @pytest.mark.filterwarnings("ignore:the scale of the targets y is hidden by noise")  # in so few rows
    def test_a_warning_names_the_remedy(self, change, algorithm):
        y, y_pub = Y_PRIV + 500, Y_PUB + 500
        with pytest.warns(UserWarning, match=_OTHER_UNITS) as caught:
            ridge(algorithm=algorithm).fit(X_PRIV, change(y), X_pub=X_PUB, y_pub=y_pub)
        assert caught[-1].filename == __file__

    @pytest.mark.covering
    @pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
    @pytest.mark.parametrize("algorithm", ["auto", "noisy-gd", "coupling", "pda-dpmd"])
    def test_noise_alone_is_no_reason(self, algorithm, epsilon):
        ridge(algorithm=algorithm, epsilon=epsilon).fit(X_PRIV[:200], Y_PRIV[:200], **PUBLIC)

    def test_several_targets_and_sources(self):
        y, y_pub = np.column_stack([Y_PRIV, 1000 * Y_PRIV]), np.column_stack([Y_PUB, Y_PUB])
        sources = {"X_pub": (X_PUB[:50], X_PUB[50:]), "y_pub": (y_pub[:50], y_pub[50:])}
        with pytest.warns(UserWarning, match=_OTHER_UNITS):
            ridge().fit(X_PRIV, y, **sources)

    def test_the_fit_is_kept_if_the_warning_is_an_error(self):
        reg = ridge()
        with pytest.raises(UserWarning, match=_OTHER_UNITS):
            reg.fit(X_PRIV, 1000 * Y_PRIV, **PUBLIC)
        assert reg.privacy_.epsilon > 0 and reg.coef_.shape == (8,)

    def test_constant_public_targets_are_not_those_of_private_rows(self):
        with pytest.warns(UserWarning, match=_OTHER_UNITS):
            ridge(target_scale=100.0).fit(X_PRIV, Y_PRIV, X_pub=X_PUB, y_pub=np.full(100, 7.0))


class TestTransformedTargets:
    @pytest.mark.parametrize(
        "how", [{"transformer": StandardScaler()}, {"func": np.log, "inverse_func": np.exp}]
    )
    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
    def test_the_wrapper_of_scikit_learn_is_refused_public_targets(self, how):
        model = TransformedTargetRegressor(ridge(), **how)
        with pytest.raises(ValueError, match=r"^TransformedTargetRegressor .*FrozenEstimator") as caught:
            model.fit(X_PRIV, Y_PRIV + 500, X_pub=X_PUB, y_pub=Y_PUB + 500)
        assert ". " not in str(caught.value)

    def test_nothing_is_drawn_or_charged_before_that(self, routing, monkeypatch):
        monkeypatch.setattr(dotted_path("base_module.transact"), pytest.fail)
        model = TransformedTargetRegressor(make_pipeline(ridge()), func=np.log, inverse_func=np.exp)
        with pytest.raises(ValueError, match="transforms y and passes y_pub on unchanged"):
            model.fit(X_PRIV, Y_PRIV + 500, **PUBLIC)

    def test_a_wrapper_that_transforms_nothing_works(self):
        model = TransformedTargetRegressor(ridge()).fit(X_PRIV, Y_PRIV, **PUBLIC)
        assert model.score(X_PRIV, Y_PRIV) > 0.9

    def test_a_transformer_fitted_to_private_targets_is_a_leak(self):
        model = TransformedTargetRegressor(ridge(target_scale=1.0), transformer=StandardScaler())
        with pytest.warns(PrivacyLeakWarning, match=r"transformer \(StandardScaler\).*fix: pass func"):
            model.fit(X_PRIV, Y_PRIV)

    def test_logarithms_take_two_lines(self):
        rate = np.exp(Y_PRIV / 1000), np.exp(Y_PUB / 1000)
        head = ridge().fit(X_PRIV, np.log(rate[0]), X_pub=X_PUB, y_pub=np.log(rate[1]))
        model = TransformedTargetRegressor(FrozenEstimator(head), func=np.log, inverse_func=np.exp)
        model.fit(X_PUB, rate[1])
        np.testing.assert_allclose(model.predict(X_PRIV), np.exp(head.predict(X_PRIV)), rtol=1e-9, atol=0)
        assert len(check_pipeline(model)) == 0 and is_regressor(model)


class TestWithPublicRows:
    def test_a_fit_is_the_fit_with_these_rows(self, rows):
        head = MixedDPLogisticRegression(random_state=0, **NEAR)
        held = WithPublicRows(head, rows.X_pub, rows.y_pub).fit(rows.X, rows.y)
        plain = clone(head).fit(*rows)
        np.testing.assert_array_equal(held.coef_, plain.coef_)
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(held, method)(rows.X), getattr(plain, method)(rows.X))
        assert held.score(rows.X, rows.y) == plain.score(rows.X, rows.y)
        assert held.privacy_ == plain.privacy_ and held.classes_.tolist() == [0, 1, 2]
        assert is_classifier(held) and len(check_pipeline(held)) == 0

    def test_what_the_estimator_lacks_is_not_there(self):
        held = WithPublicRows(ridge(), X_PUB, Y_PUB)
        assert is_regressor(held) and not hasattr(held, "predict_proba")
        assert held.fit(X_PRIV, Y_PRIV).score(X_PRIV, Y_PRIV) > 0.9

    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
    def test_clones_share_the_rows_and_searches_set_parameters(self, rows):
        held = WithPublicRows(MixedDPLogisticRegression(**NEAR), rows.X_pub, rows.y_pub)
        assert clone(held).X_pub is rows.X_pub and clone(held).estimator is not held.estimator
        search = GridSearchCV(held, {"estimator__epsilon": [1.0, 2.0]}, cv=2).fit(rows.X, rows.y)
        assert search.best_estimator_.privacy_.n_public == 60

    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
    def test_ensembles_set_no_seed_in_it(self, rows):
        held = WithPublicRows(MixedDPLogisticRegression(random_state=None, **NEAR), rows.X_pub, rows.y_pub)
        assert not any("random_state" in name for name in held.get_params())
        for bootstrap in (False, True):
            bag = BaggingClassifier(held, 2, bootstrap=bootstrap).fit(rows.X, rows.y)
            assert all(member.privacy_.noise == "cryptographic" for member in bag.estimators_)
            assert all(member.privacy_.private is not bootstrap for member in bag.estimators_)
        with pytest.warns(NotPrivateWarning, match="random_state is set"):
            held.set_params(estimator__random_state=0).fit(rows.X, rows.y)

    def test_a_pipeline_needs_routing(self, rows):
        pipe = make_pipeline(PublicOnly(StandardScaler()), MixedDPLogisticRegression(**NEAR))
        held = WithPublicRows(pipe, rows.X_pub, rows.y_pub)
        with pytest.raises(ValueError, match=r"call sklearn.set_config\(enable_metadata_routing=True\)"):
            held.fit(rows.X, rows.y)

    def test_a_step_after_others_gets_untransformed_rows_and_says_so(self, rows):
        held = WithPublicRows(MixedDPLogisticRegression(**NEAR), rows.X_pub, rows.y_pub)
        pipe = make_pipeline(FunctionTransformer(np.tanh), held)
        with pytest.warns(UserWarning, match="fix: put the whole Pipeline into WithPublicRows"):
            pipe.fit(rows.X, rows.y)

    def test_weights(self, rows):
        head = MixedDPLogisticRegression(random_state=0, algorithm="noisy-gd", **NEAR)
        weights = np.where(rows.y == 0, 0.0, 1.0)
        held = WithPublicRows(head, rows.X_pub, rows.y_pub).fit(rows.X, rows.y, sample_weight=weights)
        plain = clone(head).fit(*rows, sample_weight=weights)
        np.testing.assert_array_equal(held.coef_, plain.coef_)


class TestEnsembles:
    def held(self, rows, **parameters):
        return WithPublicRows(MixedDPLogisticRegression(**NEAR, **parameters), rows.X_pub, rows.y_pub)

    def test_bagging_names_the_one_who_set_the_seed(self, rows):
        head = MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
        with pytest.warns(NotPrivateWarning, match=r"; BaggingClassifier sets it in each member, so put"):
            BaggingClassifier(head, 2, bootstrap=False).fit(rows.X, rows.y)

    def test_a_stack_with_a_private_end(self, rows):
        final = MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR)
        members = [("a", self.held(rows)), ("b", self.held(rows, algorithm="noisy-gd"))]
        stack = StackingClassifier(members, final, cv=KFold(3))
        assert stack.fit(rows.X, rows.y).final_estimator_.privacy_.private

    @pytest.mark.parametrize(
        "stack",
        [
            lambda member: StackingClassifier([("a", member)]),
            lambda member: CalibratedClassifierCV(member, cv=2),
            lambda member: AdaBoostClassifier(member, n_estimators=2),
        ],
        ids=["stacking", "calibration", "boosting"],
    )
    def test_what_learns_without_a_budget_says_so(self, rows, stack):
        with warnings.catch_warnings(record=True, action="always") as caught:
            stack(self.held(rows)).fit(rows.X, rows.y)
        leaks = [str(w.message) for w in caught if w.category is PrivacyLeakWarning]
        assert any("learn from private rows without a budget" in leak for leak in leaks)

    @pytest.mark.covering
    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")  # of OneVsOneClassifier
    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize(
        "wrapper", [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier, MultiOutputClassifier]
    )
    def test_parts_of_the_targets_do_not_go_with_public_ones(self, rows, wrapper, n_jobs):
        y, message = rows.y, "turn y into 0 and 1 and leave y_pub as it is; fit the estimator by itself"
        if wrapper is MultiOutputClassifier:
            y = np.column_stack([rows.y, rows.y])
            message = "fit each column of y with the same y_pub; fit an estimator for each"
        with pytest.raises(ValueError, match=message) as caught, parallel_config("threading"):
            wrapper(self.held(rows), n_jobs=n_jobs).fit(rows.X, y)
        assert ". " not in str(caught.value)

    def test_parts_of_the_targets_without_public_ones(self, rows):
        one = OneVsRestClassifier(MixedDPLogisticRegression(classes=[0, 1], **NEAR)).fit(rows.X, rows.y)
        assert len(one.estimators_) == 3
        many = MultiOutputClassifier(MixedDPLogisticRegression(classes=[0, 1, 2], **NEAR))
        assert many.fit(rows.X, np.column_stack([rows.y, rows.y])).predict(rows.X).shape == (60, 2)


CUT = "scikit-learn cut X_pub and y_pub .*pass skmixdp.model_selection.public_params"


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
class TestPublicRowsThatAreCut:
    """There are as many public as private rows."""

    @pytest.mark.covering
    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("tool", [cross_val_score, cross_val_predict, permutation_test_score])
    def test_tools_that_split(self, rows, tool, n_jobs):
        head = MixedDPLogisticRegression(**NEAR)
        public = rows.bare
        few = {"n_permutations": 2} if tool is permutation_test_score else {}
        with parallel_config("threading"), pytest.warns(UserWarning, match=CUT) as caught:
            tool(head, rows.X, rows.y, cv=2, params=public, n_jobs=n_jobs, **few)
        assert n_jobs == 2 or {str(w.filename) for w in caught if "cut X_pub" in str(w.message)} == {__file__}
        tool(head, rows.X, rows.y, cv=2, params=rows.public, **few)

    def test_a_search_a_curve_and_a_pipeline(self, routing, rows):
        head, X, y = MixedDPLogisticRegression(**NEAR), rows.X, rows.y
        public = rows.bare
        pipe = make_pipeline(PublicOnly(StandardScaler()), head, transform_input=["X_pub"])
        for call in (
            lambda: GridSearchCV(head, {"epsilon": [1.0]}, cv=2).fit(X, y, **public),
            lambda: learning_curve(head, X, y, cv=2, params=public, train_sizes=[30]),
            lambda: cross_val_score(pipe, X, y, cv=2, params=public),
            lambda: cross_val_score(MixedDPLogisticRegression(PAZO("m"), **NEAR), X, y, cv=2, params=public),
        ):
            with pytest.warns(UserWarning, match=CUT):
                call()

    def test_rows_of_another_number_pass_whole_and_in_silence(self, rows):
        public = {"X_pub": rows.X_pub[:59], "y_pub": rows.y_pub[:59]}
        cross_val_score(MixedDPLogisticRegression(**NEAR), rows.X, rows.y, cv=2, params=public)


ENSEMBLES = {
    "bagging": lambda model: BaggingClassifier(model, 3),
    "boosting": lambda model: AdaBoostClassifier(model, n_estimators=3),
    "chain": ClassifierChain,
    "labels": MultiOutputClassifier,
}


class TestEnsemblesOfFrames:
    """Ensembles make arrays of frames, so an encoder is in front of them, or names columns x0, x1, ...."""

    N = 600
    FRAME = pd.DataFrame({"age": np.arange(N) % 61 + 20, "sex": np.where(np.arange(N) % 2, "m", "f")})
    LABELS = np.stack([(FRAME.age > 45) & (FRAME.sex == "m"), FRAME.age > 60], axis=1).astype(int)

    def model(self, *names):
        head = MixedDPLogisticRegression(epsilon=8.0, classes=[0, 1], **NEAR)
        kinds = (20, 80), ["m", "f"]
        return make_pipeline(TableEncoder(dict(zip(names, kinds, strict=True))), head) if names else head

    @pytest.mark.parametrize("name", ENSEMBLES)
    @pytest.mark.filterwarnings("ignore")
    def test_an_encoder_is_in_front(self, name):
        y = self.LABELS if name in ("chain", "labels") else self.LABELS[:, 0]
        encoder = self.model("age", "sex")[0]
        model = make_pipeline(encoder, ENSEMBLES[name](self.model()))
        assert model.fit(self.FRAME, y).score(self.FRAME, y) > 0.85

    @pytest.mark.filterwarnings("ignore")
    def test_columns_of_an_array_have_names(self):
        bag = BaggingClassifier(self.model("x0", "x1"), 3)
        assert bag.fit(self.FRAME, self.LABELS[:, 0]).score(self.FRAME, self.LABELS[:, 0]) > 0.85
        with pytest.raises(ValueError, match=r"names 'age'.*put the encoder in front of the ensemble"):
            BaggingClassifier(self.model("age", "sex"), 3).fit(self.FRAME, self.LABELS[:, 0])
