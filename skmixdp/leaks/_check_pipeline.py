"""Which steps of a pipeline would be fitted on private rows without paying."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sklearn.utils.validation import has_fit_parameter

from . import _rules as rules
from ._report import Finding, PipelineReport

_TARGET_MEND = "declare the scale: MixedDPRidge(target_center=..., target_scale=...)"


def check_pipeline(pipe: Any, *, public_rows: bool = True) -> PipelineReport:
    """List every step that would learn from private rows without paying.

    Parameters
    ----------
    pipe : estimator
        A ``Pipeline``, ``ColumnTransformer``, ``FeatureUnion``, search or other meta-estimator,
        nested as deep as you like, fitted or not.
    public_rows : bool, default=True
        Whether ``fit`` will be given ``X_pub``. If so, it is also checked that the public rows
        reach each step as the steps before it leave them.

    Returns
    -------
    PipelineReport
        A sequence of :class:`Finding`; it prints as a list, and is empty where nothing is found.

    Notes
    -----
    *Guarantee*: nothing is fitted and no row is seen. The check goes by classes and parameters.
    Row-wise steps, transformers of this package and estimators that take an epsilon and a delta
    pass; everything else is reported. It cannot look into functions: that a
    ``FunctionTransformer`` treats each row by itself is the word of whoever wrote the function,
    and so is the tag ``requires_fit=False`` of other transformers. Nor can it tell what is done
    with a fitted pipeline: publishing its score on private rows is a release of its own.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.preprocessing import PublicOnly, check_pipeline
    >>> print(check_pipeline(make_pipeline(StandardScaler(), MixedDPLogisticRegression()), public_rows=False))
    Pipeline check
      standardscaler (StandardScaler) learns from private rows without paying
        the mean and standard deviation of each column
        fix: PublicOnly(StandardScaler(...)), or NoisyScaler(bounds=...) where there are no public rows
    >>> pipe = make_pipeline(
    ...     PublicOnly(StandardScaler()), MixedDPLogisticRegression(), transform_input=["X_pub"]
    ... )
    >>> len(check_pipeline(pipe))
    0
    """
    found = _walk(pipe, "", in_columns=False)
    return PipelineReport(tuple(finding for finding in found if public_rows or finding.kind != "public rows"))


def _walk(estimator: Any, path: str, *, in_columns: bool) -> Iterator[Finding]:
    """Findings of an estimator and of all that it is made of."""
    if isinstance(estimator, str) or estimator is None:
        return
    names, step = rules.kinds(estimator), type(estimator).__name__
    if rules.is_public(estimator):
        if in_columns:
            yield Finding(
                "public rows",
                path,
                step,
                "inside a ColumnTransformer it does not get its columns of the public rows",
                "PublicOnly(ColumnTransformer(...)), around the whole of it",
            )
        return
    if rules.states_budget(estimator):
        searched = estimator.get_params(deep=False).get("estimator")
        yield from _walk(searched, _join(path, "estimator"), in_columns=in_columns)
        return
    if rules.learns_nothing(estimator):
        return
    known = False
    for name, (learns, fix) in rules.META_LEARNS.items():
        if name in names:
            known = True
            yield Finding("leak", path, step, learns, fix)
    yield from _of_container(estimator, path, names)
    if not known and not names & rules.ONLY_PARTS:
        yield _of_leaf(estimator, path, in_columns)
    columns = in_columns or "ColumnTransformer" in names
    for name, part in _parts(estimator):
        found = _walk(part, _join(path, name), in_columns=columns)
        if name == "transformer" and "TransformedTargetRegressor" in names:
            found = (replace(finding, fix=_TARGET_MEND) for finding in found)  # it is fitted on y
        yield from found


def _of_container(estimator: Any, path: str, names: frozenset[str]) -> Iterator[Finding]:
    """Findings about how parts are put together."""
    step = type(estimator).__name__
    if "Pipeline" in names:
        yield from _of_pipeline(estimator, path)
    if names & rules.READS_LABEL_SET:
        yield Finding(
            "note",
            path,
            step,
            "which labels occur, harmless only if that is public",
            "declare the classes wherever they can be declared, and make sure that all of them are known",
        )
    if getattr(estimator, "bootstrap", False) and names & {"BaggingClassifier", "BaggingRegressor"}:
        yield Finding(
            "leak",
            path,
            step,
            "repeats private rows several times in one fit, and the guarantee is for one row",
            "bootstrap=False",
        )
    for name in ("estimator", "final_estimator"):
        if names & rules.ONLY_PARTS and getattr(estimator, name, "absent") is None:
            yield Finding(
                "leak",
                path,
                step,
                f"a model of the rows and labels, since {name}=None takes one that has no budget",
                f"{name}=MixedDPLogisticRegression(...) or another that has one",
            )


def _of_pipeline(pipe: Any, path: str) -> Iterator[Finding]:
    if "X_pub" not in (pipe.transform_input or ()):
        earlier: list[str] = []
        for name, part in pipe.steps:
            if earlier and _takes_public_rows(part):
                yield Finding(
                    "public rows",
                    path,
                    type(pipe).__name__,
                    f"{name} gets private rows after {', '.join(earlier)} and public rows from before",
                    "transform_input=['X_pub']",
                )
                break
            if not (isinstance(part, str) or part is None):
                earlier.append(name)
    if pipe.memory is not None:
        yield Finding(
            "note",
            path,
            type(pipe).__name__,
            "memory keeps transformed private rows on disk, where no guarantee protects them",
            "memory=None, or a folder that only those may read who may read the rows",
        )


def _of_leaf(estimator: Any, path: str, in_columns: bool) -> Finding:
    """A step that is fitted on private rows."""
    step = type(estimator).__name__
    if hasattr(estimator, "fit_resample"):
        learns, fix = "new rows made of private ones, which no longer count for one person", "leave it out"
    elif rules.is_predictor(estimator) and not hasattr(estimator, "transform"):
        learns = "a model of the rows and labels, without a budget"
        fix = "a private estimator, such as MixedDPLogisticRegression or MixedDPRidge"
    else:
        known = next((rules.LEARNS[name] for name in _lineage(estimator) if name in rules.LEARNS), None)
        function = rules.column_function(estimator)
        learns = known or (f"what {function} takes from whole columns" if function else "what its fit keeps")
        if in_columns:
            fix = "PublicOnly(ColumnTransformer(...)), around the whole of it"
        else:
            fix = f"PublicOnly({step}(...))"
            if step.endswith("Scaler") or function:
                fix = "PublicOnly(StandardScaler())" if function else fix
                fix += ", or NoisyScaler(bounds=...) where there are no public rows"
            elif step in ("OneHotEncoder", "OrdinalEncoder"):
                fix += ", or declare categories=[...]"
    return Finding("leak", path, step, learns, fix)


def _parts(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Estimators among an estimator's parameters, by their names in ``set_params``."""
    if not hasattr(estimator, "get_params"):
        return
    for name, value in estimator.get_params(deep=False).items():
        if name in ("param_grid", "param_distributions"):
            for key, candidates in _candidates(value):
                yield from ((f"{name}[{key}]", part) for part in candidates if _is_estimator(part))
        elif _is_estimator(value):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, tuple) and len(item) in (2, 3) and _is_estimator(item[1]):
                    yield str(item[0]), item[1]


def _candidates(grid: Any) -> Iterator[tuple[str, list[Any]]]:
    """Values that a search may put in the place of each parameter, where they are listed."""
    for part in grid if isinstance(grid, (list, tuple)) else [grid]:
        if isinstance(part, Mapping):
            for key, values in part.items():
                if isinstance(values, (list, tuple)):
                    yield key, list(values)


def _takes_public_rows(estimator: Any) -> bool:
    """Whether an estimator, or one that it is made of, asks for ``X_pub``."""
    if not _is_estimator(estimator):
        return False
    return has_fit_parameter(estimator, "X_pub") or any(
        _takes_public_rows(part) for _, part in _parts(estimator)
    )


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "fit") and not isinstance(value, type)


def _lineage(estimator: Any) -> Iterator[str]:
    return (kind.__name__ for kind in type(estimator).__mro__)


def _join(path: str, name: str) -> str:
    return f"{path}__{name}" if path else name
