"""Find the steps of a pipeline that would be fitted on private rows without a budget."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, overload

from sklearn.base import BaseEstimator
from sklearn.utils.validation import has_fit_parameter

from ..._utils.documents import Section, as_html
from ..._utils.frames import dtype_of
from . import _rules as rules

_TARGET_FIX = (
    "pass func and inverse_func, or declare the scale: MixedDPRidge(target_center=..., target_scale=...)"
)

Kind = Literal["leak", "uncounted", "public rows", "note"]

_HEADINGS: dict[Kind, str] = {
    "leak": "learns from private rows without a budget",
    "uncounted": "makes fits that its result does not show",
    "public rows": "does not get the public rows in the right form",
    "note": "needs a decision",
}


@dataclass(frozen=True)
class Finding:
    """One problem of a pipeline that the guarantee does not cover.

    Attributes
    ----------
    kind : {"leak", "uncounted", "public rows", "note"}
        ``"leak"``: a step learns from private rows without a budget. ``"uncounted"``: it makes private fits
        and drops them, so only a ledger can count their budgets. ``"public rows"``: they do not reach a step,
        or reach it untransformed. ``"note"``: harmless under the condition in ``learns``.
    path : str
        Name of the step as in ``set_params``, for example ``columns__encode``. Empty for the
        checked object itself.
    step : str
        Class of the step.
    learns : str
        What the step would learn from private rows, or what goes wrong.
    fix : str
        What to do instead.
    """

    kind: Kind
    path: str
    step: str
    learns: str
    fix: str

    def __str__(self) -> str:
        name = f"{self.path} ({self.step})" if self.path else self.step
        return f"{name}: {self.learns}; fix: {self.fix}"


@dataclass(frozen=True)
class PipelineReport(Sequence[Finding]):
    """Findings of :func:`~skmixdp.preprocessing.check_pipeline`: a sequence, empty if there are none.

    Attributes
    ----------
    findings : tuple of Finding
        In the order of the steps.
    """

    findings: tuple[Finding, ...]

    def of_kind(self, kind: Kind) -> tuple[Finding, ...]:
        """Findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def in_words(self, *kinds: Kind) -> tuple[str, ...]:
        """Class and learned statistic of each finding of some kinds, without repeats."""
        named = (f"{each.step}: {each.learns}" for each in self.findings if each.kind in kinds)
        return tuple(dict.fromkeys(named))

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return "Pipeline check: no step is known to learn from private rows without a budget"
        lines = ["Pipeline check"]
        for kind, heading in _HEADINGS.items():
            for finding in self.of_kind(kind):
                name = f"{finding.path} ({finding.step})" if finding.path else finding.step
                lines += [f"  {name} {heading}", f"    {finding.learns}", f"    fix: {finding.fix}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self.findings:
            return as_html("", [Section(paragraphs=[str(self)])])
        rows = [(each.kind, each.path, each.step, each.learns, each.fix) for each in self.findings]
        return as_html("", [Section("Pipeline check", rows, ("kind", "step", "class", "what", "fix"))])


def check_pipeline(pipe: object, *, public_rows: bool = True) -> PipelineReport:
    """List the steps that would learn from private rows without spending a budget.

    Parameters
    ----------
    pipe : estimator
        A ``Pipeline``, ``ColumnTransformer``, ``FeatureUnion``, search or other meta-estimator.
        It may be nested, and fitted or not.
    public_rows : bool, default=True
        Whether ``X_pub`` will be passed to ``fit``. If so, the check also looks for steps that the
        public rows reach without the transformations of earlier steps.

    Returns
    -------
    PipelineReport
        A sequence of :class:`Finding`, empty if nothing is found. It prints as a list.

    Notes
    -----
    *Guarantee*: nothing is fitted and no row is read. The check uses classes and parameters only.

    Row-wise steps, transformers of this package and estimators with an epsilon and a delta pass.
    Everything else is reported. The check cannot look into functions. It trusts that a
    ``FunctionTransformer`` treats each row by itself, and it trusts the tag ``requires_fit=False``
    of other transformers. It does not cover later uses of a fitted pipeline: publishing its score
    on private rows is a release of its own.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.preprocessing import PublicOnly, check_pipeline
    >>> print(check_pipeline(make_pipeline(StandardScaler(), MixedDPLogisticRegression()), public_rows=False))
    Pipeline check
      standardscaler (StandardScaler) learns from private rows without a budget
        the mean and standard deviation of each column
        fix: PublicOnly(StandardScaler(...)), or NoisyScaler() without public rows
    >>> pipe = make_pipeline(
    ...     PublicOnly(StandardScaler()), MixedDPLogisticRegression(), transform_input=["X_pub"]
    ... )
    >>> len(check_pipeline(pipe))
    0
    """
    findings = _walk(pipe, "", in_columns=False)
    return PipelineReport(
        tuple(finding for finding in findings if public_rows or finding.kind != "public rows")
    )


def _walk(estimator: Any, path: str, *, in_columns: bool) -> Iterator[Finding]:
    """Findings of an estimator and its parts; one that raises an error when inspected is a leak."""
    try:
        yield from list(_findings(estimator, path, in_columns))
    except Exception as error:
        if path and isinstance(error, RecursionError):
            raise  # raised up to the outermost object, since this one contains itself
        yield Finding("leak", path, type(estimator).__name__, rules.UNKNOWN, "a step that can be looked at")


def _findings(estimator: BaseEstimator, path: str, in_columns: bool) -> Iterator[Finding]:
    """Findings of an estimator and of its parts."""
    if isinstance(estimator, str) or estimator is None:
        return
    names, step = rules.kinds(estimator), type(estimator).__name__
    if names & rules.PUBLIC:
        if in_columns:
            yield Finding(
                "public rows",
                path,
                step,
                "inside a ColumnTransformer it does not get its columns of the public rows",
                "wrap the whole ColumnTransformer: PublicOnly(ColumnTransformer(...))",
            )
        return
    if rules.states_budget(estimator):
        for name, part in _parts(estimator):
            if name.startswith(("estimator", "param_grid")):  # parameters of a search
                yield from _walk(part, _join(path, name), in_columns=in_columns)
        return
    if rules.learns_nothing(estimator):
        return
    learned = [learns_and_fix for name, learns_and_fix in rules.META_LEARNS.items() if name in names]
    if not rules.chooses_publicly(estimator):
        yield from (Finding("leak", path, step, *learns_and_fix) for learns_and_fix in learned)
    yield from _of_container(estimator, path, names)
    if not (learned or names & rules.ONLY_PARTS or rules.steps_of(estimator)):
        yield _of_leaf(estimator, path, in_columns)
    columns = in_columns or "ColumnTransformer" in names
    for name, part in _parts(estimator):
        if name != "final_estimator" and "_BaseStacking" in names and estimator.cv == "prefit":
            continue  # not fitted
        findings = _walk(part, _join(path, name), in_columns=columns)
        if name == "transformer" and "TransformedTargetRegressor" in names:
            findings = (replace(finding, fix=_TARGET_FIX) for finding in findings)  # fitted on y
        yield from findings


def _of_container(estimator: BaseEstimator, path: str, names: frozenset[str]) -> Iterator[Finding]:
    """Findings about a container itself, apart from its parts."""
    step = type(estimator).__name__
    leak = partial(Finding, "leak", path, step)
    if "Pipeline" in names:
        yield from _of_pipeline(estimator, path)
    if names & rules.READS_LABEL_SET:
        yield Finding(
            "note",
            path,
            step,
            "the set of labels, which is harmless only if it is public",
            "declare the classes where possible, and make sure that all of them are public",
        )
    if rules.drops_fits(estimator):
        yield Finding(
            "uncounted",
            path,
            step,
            "drops fits, each of which spends its budget, so that only a ledger counts them",
            "a ledger, which counts every fit",
        )
        if rules.stratifies(estimator) and ("BaseSearchCV" not in names or rules.chooses_publicly(estimator)):
            yield leak(
                "folds that are stratified by private labels, so that one label moves several rows",
                "cv=KFold(5), or another splitter that does not look at labels",
            )
    if rules.deals_by_size(getattr(estimator, "cv", None)):
        yield leak(rules.BY_SIZE, rules.BY_SIZE_FIX)
    if getattr(estimator, "bootstrap", False) and names & {"BaggingClassifier", "BaggingRegressor"}:
        yield leak("repeats private rows in one fit, while the guarantee is for one row", "bootstrap=False")
    for name in ("estimator", "final_estimator"):
        if names & rules.ONLY_PARTS and getattr(estimator, name, "absent") is None:
            yield leak(
                f"a model of the rows and labels, since {name}=None means one without a budget",
                f"{name}=MixedDPLogisticRegression(...) or another estimator with a budget",
            )


def _of_pipeline(pipe: Any, path: str) -> Iterator[Finding]:
    own = vars(pipe)  # of which a subclass may lack some
    if "X_pub" not in (own.get("transform_input") or ()):
        earlier: list[str] = []
        for name, part in rules.steps_of(pipe):
            if earlier and _takes_public_rows(part):
                yield Finding(
                    "public rows",
                    path,
                    type(pipe).__name__,
                    f"{name} gets private rows after {', '.join(earlier)}, and untransformed public rows",
                    "put the whole Pipeline into WithPublicRows"
                    if "WithPublicRows" in rules.kinds(part)
                    else "transform_input=['X_pub']",
                )
                break
            earlier.append(name)
    if own.get("memory") is not None:
        yield Finding(
            "note",
            path,
            type(pipe).__name__,
            "memory stores transformed private rows on disk, where no guarantee protects them",
            "memory=None, or a folder that is protected like the private rows",
        )


def _of_leaf(estimator: Any, path: str, in_columns: bool) -> Finding:
    """The finding for a step without parts that is fitted on private rows."""
    step = type(estimator).__name__
    if hasattr(estimator, "fit_resample"):
        learns = "new rows made from private ones, so that one person affects several rows"
        fix = "remove this step"
    elif rules.is_predictor(estimator) and not hasattr(estimator, "transform"):
        learns = "a model of the rows and labels, without a budget"
        fix = "a private estimator, such as MixedDPLogisticRegression or MixedDPRidge"
    else:
        lineage = (kind.__name__ for kind in type(estimator).__mro__)
        lesson = next((rules.LEARNS[name] for name in lineage if name in rules.LEARNS), None)
        function = rules.column_function(estimator)
        unknown = f"statistics of whole columns, by {function}" if function else rules.UNKNOWN
        learns = lesson or unknown
        if in_columns:
            fix = "wrap the whole ColumnTransformer: PublicOnly(ColumnTransformer(...))"
        else:
            fix = f"PublicOnly({step}(...))"
            if step.endswith("Scaler") or function:
                fix = "PublicOnly(StandardScaler())" if function else fix
                fix += ", or NoisyScaler() without public rows"
            elif step in ("OneHotEncoder", "OrdinalEncoder"):
                fix += ", or declare categories=[...]"
    return Finding("leak", path, step, learns, fix)


def _parts(estimator: BaseEstimator) -> Iterator[tuple[str, Any]]:
    """Steps of an estimator, and estimators among its parameters, by their names in ``set_params``."""
    steps = rules.steps_of(estimator)
    yield from steps
    if not hasattr(estimator, "get_params"):
        return
    for name, value in estimator.get_params(deep=False).items():
        if steps and name == "steps":
            continue
        if name in ("param_grid", "param_distributions"):
            for key, candidates in _candidates(value):
                yield from ((f"{name}[{key}]", part) for part in candidates if rules.is_step(part))
        elif rules.is_step(value):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, tuple) and len(item) in (2, 3) and rules.is_step(item[1]):
                    yield str(item[0]), item[1]


def _candidates(grid: Any) -> Iterator[tuple[str, list[Any]]]:
    """Parameters of a search that lists candidates, with these candidates."""
    for part in grid if isinstance(grid, (list, tuple)) else [grid]:
        if isinstance(part, Mapping):
            for key, values in part.items():
                if isinstance(values, (list, tuple)) or str(dtype_of(values)) == "object":
                    yield key, list(values)


def _takes_public_rows(estimator: BaseEstimator) -> bool:
    """Whether an estimator or one of its parts asks for ``X_pub``."""
    if not rules.is_step(estimator):
        return False
    return has_fit_parameter(estimator, "X_pub") or any(
        _takes_public_rows(part) for _, part in _parts(estimator)
    )


def _join(path: str, name: str) -> str:
    return f"{path}__{name}" if path else name
