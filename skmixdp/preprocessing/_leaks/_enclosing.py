"""Warn if earlier steps of the pipeline learned from private rows.

Inside ``Pipeline.fit`` the last step gets transformed rows, and scikit-learn has no way to ask where
they come from. But clones, searches and workers all call ``Pipeline.fit``, so the pipeline is on the
call stack. This is the only file that looks there. It is an aid, not a part of the guarantee: errors
are ignored, and a pipeline around a search with fits in other processes is not found.
"""

import sys
import warnings
from typing import Any

from ...exceptions import PrivacyLeakWarning

_METHODS = frozenset({"fit", "fit_transform", "fit_predict"})
_SHOWN = 3


def warn_of_leaks(*, public_rows: bool) -> None:
    """Warn of leaks in the outermost scikit-learn pipeline that is being fitted, if there is one.

    Parameters
    ----------
    public_rows : bool
        Whether the head was given public rows.

    Warns
    -----
    PrivacyLeakWarning
        If a step of that pipeline was fitted on private rows without a budget.
    UserWarning
        If public rows reached a step untransformed.
    """
    try:
        pipe, depth = _find()
        if pipe is None:
            return
        from ._check_pipeline import check_pipeline

        report = check_pipeline(pipe, public_rows=public_rows)
        leaks, lost = report.of_kind("leak"), report.of_kind("public rows")
    except Exception:  # a check that inspects foreign objects must not make a fit fail
        return
    for found, category, words in (
        (leaks, PrivacyLeakWarning, "steps of the pipeline learn from private rows without a budget"),
        (lost, UserWarning, "the pipeline does not transform the public rows as it does the private ones"),
    ):
        if found:
            listed = "; and ".join(map(str, found[:_SHOWN]))
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            warnings.warn(
                f"{words}: {listed}{more} (skmixdp.preprocessing.check_pipeline lists all findings).",
                category,
                stacklevel=depth,
            )


def _find() -> tuple[Any, int]:
    """The outermost pipeline that is being fitted, and the stack level of the user's own call."""
    module = sys.modules.get("sklearn.pipeline")
    if module is None:
        return None, 0
    owner, caller = None, 0
    # Level 1 is `warn_of_leaks`.
    frame, level = sys._getframe(1), 1
    while frame is not None:
        if frame.f_code.co_name in _METHODS and isinstance(frame.f_locals.get("self"), module.Pipeline):
            owner, caller = frame.f_locals["self"], 0
        elif owner is not None and not caller and not _is_machinery(frame.f_globals.get("__name__", "")):
            caller = level
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return owner, caller or level - 1


def _is_machinery(module: str) -> bool:
    return module.partition(".")[0] in ("sklearn", "joblib")
