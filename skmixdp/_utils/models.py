"""What tools ask of any estimator: its last step, its report, its classes and the names of its features."""

from typing import Any

from sklearn.pipeline import Pipeline


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


def callbacks_of(part: object) -> list[Any]:
    """The callbacks of scikit-learn that were set for an estimator; none of other objects."""
    return getattr(part, "_skl_callbacks", None) or []
