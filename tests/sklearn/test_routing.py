"""Public rows reach fit through pipelines and model selection, whole and transformed."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skmixdp import MixedDPLogisticRegression
from skmixdp.algorithms import AdaMix, NoisyGD
from skmixdp.exceptions import PrivacyLeakWarning
from skmixdp.model_selection import public_params
from skmixdp.preprocessing import PublicOnly
from tests.rounding import assert_close


@pytest.fixture
def spy():
    """A classifier class that keeps what each of its fits receives."""

    class Spy(MixedDPLogisticRegression):
        calls = []  # noqa: RUF012

        def fit(self, X, y, X_pub=None, y_pub=None):
            self.calls.append({"X": X, "y": y, "X_pub": X_pub, "y_pub": y_pub, "params": self.get_params()})
            return super().fit(X, y, X_pub=X_pub, y_pub=y_pub)

    return Spy


def scaled(head, **options):
    """A head behind a publicly fitted scaler."""
    return Pipeline([("scale", PublicOnly(StandardScaler())), ("clf", head)], **options)


def n_rows_seen(spy):
    sources = (call["X_pub"] for call in spy.calls)
    return [sum(map(len, found)) if isinstance(found, tuple) else len(found) for found in sources]


def test_pipeline_transforms_each_element_of_a_tuple(routing, rows, spy):
    pipe = scaled(spy(), transform_input=["X_pub"])
    pipe.fit(rows.X, rows.y, **rows.public)
    (call,) = spy.calls
    (X_pub,) = call["X_pub"]
    np.testing.assert_array_equal(X_pub, StandardScaler().fit_transform(rows.X_pub))
    np.testing.assert_array_equal(call["y_pub"][0], rows.y_pub)


def test_every_step_sees_public_rows_as_the_steps_before_it_left_them(routing, rows, spy):
    steps = [PublicOnly(StandardScaler()), FunctionTransformer(np.tanh), PublicOnly(PCA(n_components=2))]
    pipe = make_pipeline(*steps, spy(), transform_input=["X_pub"])
    pipe.fit(rows.X, rows.y, **rows.public)
    public = np.tanh(StandardScaler().fit_transform(rows.X_pub))
    assert_close(pipe[2].transformer_.mean_, public.mean(axis=0))
    assert_close(spy.calls[0]["X_pub"][0], pipe[2].transformer_.transform(public))


def test_without_transform_input_the_head_gets_untransformed_public_rows(routing, rows, spy):
    """The trap that the documentation warns of: nothing fails, so fit warns of it, as no leak."""
    words = r"clf gets .* untransformed public rows; fix: transform_input=\['X_pub'\]"
    with pytest.warns(UserWarning, match=words) as caught:
        scaled(spy()).fit(rows.X, rows.y, **rows.bare)
    assert not any(issubclass(warning.category, PrivacyLeakWarning) for warning in caught)
    np.testing.assert_array_equal(spy.calls[0]["X_pub"], rows.X_pub)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_as_many_sources_as_private_rows_fail_rather_than_lose_rows(routing, rows, spy):
    sources = tuple(np.array_split(rows.X_pub, 60)), tuple(np.array_split(rows.y_pub, 60))
    with pytest.raises(ValueError, match="fits failed"):
        cross_val_score(spy(), rows.X, rows.y, cv=3, params=public_params(*sources))
    assert n_rows_seen(spy) == [40, 40, 40]


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_grid_search_reaches_the_budget_and_the_algorithm(routing, rows, spy):
    pipe = scaled(spy(AdaMix()), transform_input=["X_pub"])
    of_head = {"clf__epsilon": [0.5, 2.0], "clf__algorithm__quantile": [0.5, 0.9]}
    search = GridSearchCV(pipe, {**of_head, "scale__transformer__with_std": [True]}, cv=2)
    search.fit(rows.X, rows.y, **rows.public)
    assert n_rows_seen(spy) == [60] * 9
    tried = {(call["params"]["epsilon"], call["params"]["algorithm__quantile"]) for call in spy.calls}
    assert tried == {(0.5, 0.5), (0.5, 0.9), (2.0, 0.5), (2.0, 0.9)}
    best = search.best_estimator_["clf"]
    assert best.privacy_.n_public == 60
    assert best.privacy_.epsilon <= search.best_params_["clf__epsilon"]
    for call in spy.calls:
        np.testing.assert_array_equal(call["X_pub"][0], StandardScaler().fit_transform(rows.X_pub))


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_grid_search_over_algorithm_objects(routing, rows):
    algorithms = [AdaMix(quantile=0.5), AdaMix(n_components=2), NoisyGD(clip=0.25)]
    search = GridSearchCV(MixedDPLogisticRegression(), {"algorithm": algorithms}, cv=2)
    search.fit(rows.X, rows.y, **rows.public)
    assert type(search.best_estimator_.algorithm) in (AdaMix, NoisyGD)
    assert len(search.cv_results_["params"]) == 3


def test_a_name_has_no_parameters_to_search(routing, rows):
    search = GridSearchCV(MixedDPLogisticRegression("adamix"), {"algorithm__quantile": [0.5]}, cv=2)
    with pytest.raises(ValueError, match=r"algorithm__quantile needs an object, .*AdaMix\(\)"):
        search.fit(rows.X, rows.y, **rows.public)


@pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
def test_several_sources_pass_whole(routing, rows, spy):
    X_pub, y_pub = (rows.X_pub[:25], rows.X_pub[25:]), (rows.y_pub[:25], rows.y_pub[25:])
    pipe = scaled(spy(), transform_input=["X_pub"])
    cross_val_score(pipe, rows.X, rows.y, cv=2, params=public_params(X_pub, y_pub))
    assert [[len(part) for part in call["X_pub"]] for call in spy.calls] == [[25, 35]] * 2


class TestRoutingOff:
    """scikit-learn's default: what a user who forgot the switch gets to see."""

    @pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")
    def test_a_bare_head_in_a_search_still_gets_them(self, rows, spy):
        GridSearchCV(spy(), {"epsilon": [1.0]}, cv=2).fit(rows.X, rows.y, **rows.public)
        cross_val_score(spy(), rows.X, rows.y, cv=2, params=rows.public)
        assert n_rows_seen(spy) == [60] * 5


class TestPublicParams:
    def test_arrays_become_tuples_of_one(self, rows):
        params = rows.public
        assert params["X_pub"][0] is rows.X_pub and params["y_pub"][0] is rows.y_pub
        assert len(params["X_pub"]) == len(params["y_pub"]) == 1

    def test_tuples_pass_through(self, rows):
        X_pub, y_pub = (rows.X_pub, rows.X_pub), (rows.y_pub, rows.y_pub)
        params = public_params(X_pub, y_pub)
        assert params["X_pub"] is X_pub and params["y_pub"] is y_pub
