"""Fitted transformers of scikit-learn for operations with known numbers."""

from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from .operations import (
    Affine,
    Array,
    Change,
    Cut,
    Marked,
    Operation,
    Operations,
    Project,
    ShortRows,
    Squared,
    Take,
    UnitRows,
)

#: A step of a pipeline.
Step = tuple[str, Any]


def function(call: object, **options: object) -> FunctionTransformer:
    """A function of NumPy, pandas or Python with options."""
    return FunctionTransformer(call, kw_args=options)


def steps_of(operations: Operations, d: int) -> list[Step]:
    """Operations on rows (n, d) as steps of a pipeline."""
    return [(name, _step_of(operation, d)) for name, operation in operations]


def projection(components: Array) -> TruncatedSVD:
    """``x @ components.T``, as a TruncatedSVD with fitted attributes."""
    step = TruncatedSVD(n_components=len(components))
    step.components_ = np.array(components, order="C")
    step.n_features_in_ = components.shape[1]
    return step


def _step_of(operation: Operation, d: int) -> Any:
    match operation:
        case Affine(center, scale):
            return _scaler(center, scale)
        case Cut(low, high):
            return function(np.clip, a_min=low, a_max=high)
        case Marked():
            filled = function(np.nan_to_num, nan=0.0, posinf=np.inf, neginf=-np.inf)
            return FeatureUnion([("known", filled), ("missing", FunctionTransformer(np.isnan))])
        case Take(places):
            return function(np.take, indices=places, axis=1)
        case Squared(start):
            first = function(np.delete, obj=slice(start, None), axis=1)
            last = [("last", function(np.delete, obj=slice(start), axis=1)), ("square", function(np.square))]
            return FeatureUnion([("first", first), ("squares", Pipeline(last))])
        case UnitRows(norm):
            step = Normalizer(norm)
            step.n_features_in_ = d
            return step
        case ShortRows(bound):
            return _shortened(bound, d)
        case Project(components):
            return projection(components)
        case Change(factors, rest):
            return projection((rest * np.eye(d) + np.linalg.multi_dot([np.eye(d), *factors])).T)


def _scaler(mean: Array | None, scale: Array | None) -> StandardScaler:
    step = StandardScaler(with_mean=mean is not None, with_std=scale is not None)
    step.mean_ = None if mean is None else mean.copy()
    step.scale_ = None if scale is None else np.array(scale)
    step.var_ = None if scale is None else scale**2
    step.n_samples_seen_ = 1
    step.n_features_in_ = max(np.size(each) for each in (mean, scale) if each is not None)
    return step


def _shortened(bound: float, d: int) -> Pipeline:
    """Append ``sqrt(max(bound^2 - |x|^2, 0))``, normalise the longer row, and drop the last column."""
    missing = Pipeline(
        [
            ("length", function(np.linalg.norm, axis=1, keepdims=True)),
            ("square", FunctionTransformer(np.square)),
            ("missing", _scaler(np.array([bound**2]), np.array([-1.0]))),
            ("positive", function(np.clip, a_min=0.0, a_max=None)),
            ("root", FunctionTransformer(np.sqrt)),
        ]
    )
    longer = FeatureUnion([("row", FunctionTransformer()), ("missing", missing)])
    unit = _step_of(UnitRows("l2"), d + 1)
    return Pipeline([("longer", longer), ("unit", unit), ("row", function(np.delete, obj=-1, axis=1))])
