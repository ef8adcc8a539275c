"""What tools ask of models: protocols of fitted ones, and questions that any estimator answers."""

from typing import Any, Protocol, runtime_checkable

from sklearn.pipeline import Pipeline


class Model(Protocol):
    """A fitted estimator of this library: its report, its parameters and its predictions."""

    privacy_: Any

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...

    def predict(self, X: Any) -> Any: ...


@runtime_checkable
class FittedSearch(Protocol):
    """A search over parameters, of this library or of scikit-learn, that has chosen a model."""

    best_estimator_: Any
    best_params_: dict[str, Any]


class LinearModel(Model, Protocol):
    """A fitted linear head: its numbers, and what it does to rows before them."""

    coef_: Any
    intercept_: Any
    n_features_in_: int
    n_iter_: int
    _row_map: Any
    # Classifiers alone have these.
    classes_: Any
    multilabel_: bool

    def predict_proba(self, X: Any) -> Any: ...


def last_step(estimator: Any) -> Any:
    """The last step of a pipeline, of pipelines in it too; another estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def report_of(estimator: object) -> Any:
    """The report of a fitted estimator; None if it has none."""
    return getattr(estimator, "privacy_", None)


def names_of_features(estimator: object) -> Any:
    """The names of the columns that an estimator was fitted to, (n_features,); None without names."""
    return getattr(estimator, "feature_names_in_", None)


def classes_of(estimator: object) -> Any:
    """The classes of a fitted classifier; None of another estimator."""
    return getattr(estimator, "classes_", None)


def has_several_labels(estimator: object) -> bool:
    """Whether a fitted classifier has several labels per row."""
    return bool(getattr(estimator, "multilabel_", False))


def predicts_rates(estimator: object) -> bool:
    """Whether predictions of a fitted head are exponentials of its outputs."""
    return type(estimator).__name__ in ("MixedDPPoissonRegressor", "AdditiveDPPoissonRegressor")


def row_map_of(estimator: object) -> Any:
    """What a linear head does to rows before its coefficients; None of other estimators."""
    return getattr(estimator, "_row_map", None)


def record_of(estimator: object) -> Any:
    """The recorded privacy loss of each private row, which is private; None without a record."""
    return getattr(estimator, "per_instance_", None)


def callbacks_of(part: object) -> list[Any]:
    """The callbacks of scikit-learn that were set for an estimator; none of other objects."""
    return getattr(part, "_skl_callbacks", None) or []
