"""Find what scikit-learn does around a fit: leaks, misused public rows, and seeds.

Inside ``Pipeline.fit`` the last step gets transformed rows, and scikit-learn has no way to ask where
they come from. But clones, searches and workers all call ``Pipeline.fit``, so the pipeline is on the
call stack. So are pipelines of other libraries, and any object that has ``steps``. This is the only
file that looks there. It is an aid, not a part of the guarantee: errors are ignored. A worker, in a thread
or a process, sees its own part of the work: the fold of a search or a cross-validation, but no other wrapper.
"""

import sys
from collections.abc import Sized
from contextlib import suppress
from traceback import walk_stack
from types import FrameType
from typing import Any

from sklearn.model_selection import cross_validate

from ..._utils.frames import n_rows_of
from ..._utils.process import warn
from ...exceptions import PrivacyLeakWarning
from ._check_pipeline import Finding, PipelineReport, check_pipeline
from ._rules import (
    BY_SIZE,
    BY_SIZE_FIX,
    deals_by_size,
    holds_public_targets,
    is_pipeline,
    is_public_score,
    kinds,
    steps_of,
)

_METHODS = frozenset({"fit", "fit_transform", "fit_predict"})
_OTHER_ROWS = "other rows than those that were passed, so that one of these may be behind several"
_OTHER_ROWS_FIX = "leave out the step that makes or drops rows; class_weight allows for rare classes"
#: Module of the functions that fit their argument ``estimator``, and score it or predict with it.
_VALIDATION = cross_validate.__module__
_SEARCH = "skmixdp.model_selection._search.private_search"
#: Local variable that marks a frame of scikit-learn for which a warning was already given.
_MARK = "__skmixdp_warned_of__"
#: Names that scikit-learn's functions give to the rows of a training fold.
_FOLDS = ("train", "train_idx", "indices")
_SHOWN = 3
_SCORES_FIX = "score public rows: public_cross_val_score, or scoring=public_score(X_pub, y_pub)"
_BINARY = (
    "OneVsRestClassifier and its like turn y into 0 and 1 and leave y_pub as it is; fit the estimator by "
    "itself, since it takes several classes or labels, or leave the public rows out and pass classes=[0, 1]."
)
_COLUMN = (
    "MultiOutputClassifier and MultiOutputRegressor fit each column of y with the same y_pub; fit an "
    "estimator for each column, or MixedDPRidge or MixedDPLogisticRegression to all columns."
)
#: Functions of scikit-learn that fit to a part of the targets and pass public targets on whole.
_ONE_OF_SEVERAL = {
    ("sklearn.multiclass", "_fit_binary"): _BINARY,
    ("sklearn.multiclass", "_fit_ovo_binary"): _BINARY,
    ("sklearn.multioutput", "_fit_estimator"): _COLUMN,
}


def warn_of_leaks(X: object, *, public_rows: bool, persons: bool = False) -> tuple[str, ...]:
    """Warn, once per call, of leaks in the outermost pipeline or call of scikit-learn; return them.

    ``X`` are the rows of a fit; None of a release that may take a part of those that were passed.
    """
    try:
        call, search = _outermost_fit()
        if call is None:
            return ()
        name, report = _findings(call, public_rows, persons)
        report = PipelineReport((*report, *([] if X is None else _wrong_numbers_of_rows(n_rows_of(X)))))
        leaks, lost = report.of_kind("leak"), report.of_kind("public rows")
        # Each fit of a private search gives the warning; the search collects warnings and shows each once.
        token = object() if search is None else search.f_locals.setdefault(_MARK, object())
        variables = call.f_locals
    except Exception:  # a check that inspects foreign objects must not make a fit fail
        return ()
    for findings, category, words in (
        (leaks, PrivacyLeakWarning, f"{name} learn from private rows without a budget"),
        (lost, UserWarning, "the pipeline does not transform the public rows as it does the private ones"),
    ):
        mark = _MARK + category.__name__
        if findings and variables.get(mark, token) is token:
            listed = "; and ".join(map(str, findings[:_SHOWN]))
            more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
            warn(
                f"{words}: {listed}{more} (skmixdp.preprocessing.check_pipeline lists all findings).",
                category,
            )
            # After the warning: if a filter turns it into an error, each later fit must fail as well.
            variables[mark] = token
    return report.in_words("leak")


def check_public_rows(n_rows: int, X_pub: Any, name: str = "X_pub") -> None:
    """Refuse public rows that an enclosing wrapper misuses, and warn if it cut them to a fold."""
    if X_pub is None:
        return
    refusal, cut = None, False
    with suppress(Exception):
        calls = [(frame, module) for frame, module in _calls() if module.startswith("sklearn.")]
        refusal = next(filter(None, (_misuse(*call) for call in calls)), None)
        # A tuple of sources is passed on whole. Anything else might have the length of a fold by chance.
        if not isinstance(X_pub, tuple) and n_rows_of(X_pub) == n_rows:
            cut = any(
                isinstance(frame.f_locals.get(fold), Sized) and len(frame.f_locals[fold]) == n_rows
                for frame, module in calls
                for fold in _FOLDS
                if not module.startswith("sklearn.utils.")
            )
    if refusal is not None:
        raise ValueError(refusal)
    if cut:
        cut_rows, remedy = "X_pub and y_pub", "skmixdp.model_selection.public_params(X_pub, y_pub)"
        if name != "X_pub":
            cut_rows, remedy = name, f"the tuple ({name},)"
        warn(
            f"scikit-learn cut {cut_rows} to the rows of a training fold, since they are as long as X; "
            f"pass {remedy}, which is passed on whole."
        )


def enclosing_pipeline() -> Any:
    """The outermost plain pipeline that is fitting; None without one."""
    outermost = None
    with suppress(Exception):
        for frame, module in _calls():
            if module.startswith("sklearn.") and frame.f_code.co_name in _METHODS:
                owner = frame.f_locals.get("self")
                if "Pipeline" in kinds(owner) and not hasattr(owner, "_sets_routing"):
                    outermost = owner
    return outermost


def seeding_ensemble() -> str | None:
    """The class of the ensemble of scikit-learn that is fitting, which sets a seed in each member."""
    with suppress(Exception):
        for frame, module in _calls():
            if module.startswith("sklearn.ensemble."):
                owner = frame.f_locals.get("self", frame.f_locals.get("ensemble"))
                if "BaseEnsemble" in kinds(owner):
                    return type(owner).__name__
    return None


def _calls(frame: FrameType | None = None) -> list[tuple[FrameType, str]]:
    """Frames of the call stack and their modules, the innermost first, from ``frame`` or the caller's caller.

    The caller's own frame would hold itself, and with it the private rows, until garbage is collected. A
    frame whose ``f_locals`` were read keeps them until it ends (before Python 3.13), so those of methods
    alone are read.
    """
    outer = walk_stack(frame or sys._getframe(2))
    return [(call, str(call.f_globals.get("__name__", ""))) for call, _ in outer]


def _outermost_fit() -> tuple[FrameType | None, FrameType | None]:
    """The outermost fit of steps or call of scikit-learn that may leak, and a private search in it."""
    call, search, within = None, None, None
    for frame, module in _calls():
        package, name = module.partition(".")[0], frame.f_code.co_name
        if package not in ("sklearn", "joblib", "skmixdp"):
            fits = _pipeline_of(frame) is not None
        elif package == "sklearn" and name in _METHODS:
            fits = "BaseEstimator" in kinds(frame.f_locals.get("self"))
        else:
            fits = module == _VALIDATION and "estimator" in frame.f_locals
        if fits:
            call, search = frame, within
        elif module == _SEARCH and name == "fit":
            within = frame
    return call, search


def _pipeline_of(frame: FrameType) -> Any:
    """The pipeline whose method a frame of the call stack is, found by its steps; or None."""
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    is_method = frame.f_code.co_qualname.rpartition(".")[0][-1:] not in ("", ">")  # or a function
    owner = frame.f_locals.get(names[0]) if names and is_method else None
    with suppress(Exception):  # any object may be there, such as one whose attributes fail
        return owner if frame.f_code.co_name in dir(type(owner)) and is_pipeline(owner) else None


def _wrong_numbers_of_rows(n_rows: int) -> list[Finding]:
    """The finding of a pipeline that was passed another number of rows than its last step is."""
    # The innermost first: each is the last step of the next one.
    last = None
    for frame, module in _calls():
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        if last is None and module.startswith("skmixdp.") and frame.f_code.co_name == "fit":
            last = frame.f_locals.get("self")
        owner = None if last is None else _pipeline_of(frame)
        if owner is None or all(step is not last for _, step in steps_of(owner)[-1:]):
            continue
        if len(names) > 1 and n_rows_of(frame.f_locals.get(names[1])) != n_rows:
            return [Finding("leak", "", type(owner).__name__, _OTHER_ROWS, _OTHER_ROWS_FIX)]
        last = owner
    return []


def _findings(call: FrameType, public_rows: bool, persons: bool) -> tuple[str, PipelineReport]:
    """Description of the call, and the leaks of its estimator."""
    name, arguments = call.f_code.co_name, call.f_locals
    owner = _pipeline_of(call)
    is_method = owner is not None or name in _METHODS
    owner = arguments["self" if is_method else "estimator"] if owner is None else owner
    report = check_pipeline(owner, public_rows=public_rows)
    step = type(owner).__name__ if is_method else name
    cv = getattr(owner, "cv", ()) if is_method else arguments.get("cv", ())
    # The check of a search finds folds that depend on group sizes, but not that rows belong to persons.
    if deals_by_size(cv, persons=persons) and not (is_method and deals_by_size(cv)):
        report = PipelineReport((Finding("leak", "", step, BY_SIZE, BY_SIZE_FIX), *report))
    if is_method:
        return "steps of the pipeline" if is_pipeline(owner) else f"parts of {step}", report
    public = is_public_score(arguments.get("scoring", arguments.get("scorer")))
    # In a worker, predictions may be those of a StackingClassifier, which does not release them.
    if public or ("predict" in name and any("joblib" in module for _, module in _calls(call))):
        return "parts of a cross-validation", report
    name = "cross-validation" if name.startswith("_") else name
    finding = Finding("leak", "", name, "scores or predictions for private rows, without noise", _SCORES_FIX)
    return f"parts of {name}", PipelineReport((finding, *report))


def _misuse(frame: FrameType, module: str) -> str | None:
    """The message, if a frame of scikit-learn is a fit that treats public and private rows differently."""
    function = frame.f_code.co_name
    if (module, function) in _ONE_OF_SEVERAL:
        return _ONE_OF_SEVERAL[module, function]
    if function != "fit":
        return None
    owner = frame.f_locals.get("self")
    names, arguments = kinds(owner), frame.f_locals.get("fit_params") or {}
    if "TransformedTargetRegressor" in names and (
        arguments.get("y_pub") is not None or holds_public_targets(owner)
    ):
        if owner.transformer is None and owner.func is None:  # type: ignore[union-attr]
            return None
        return (
            "TransformedTargetRegressor transforms y and passes y_pub on unchanged, that of WithPublicRows "
            "too; fit its regressor to transformed targets, and pass FrozenEstimator(regressor) here."
        )
    if "_BaseStacking" in names and arguments.get("X_pub") is not None:
        return (
            f"{type(owner).__name__} passes X_pub to its final estimator too, whose rows are predictions; "
            "put each member into skmixdp.model_selection.WithPublicRows, and leave X_pub out of fit."
        )
    return None
