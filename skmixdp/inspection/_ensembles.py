"""The guarantee of an ensemble as a whole."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._utils.models import report_of
from ..preprocessing import PipelineReport, check_pipeline
from ..privacy.accounting import gaussian
from ..privacy.accounting.events import Neighboring, relation_name
from ..privacy.report import Report, relation_words

_Report = TypeVar("_Report", bound=Any)


@dataclass(frozen=True, kw_only=True)
class EnsembleReport(Report):
    """The guarantee of all members of an ensemble together.

    It prints as a table and converts to HTML and JSON.

    Attributes
    ----------
    epsilon, delta : float
        All members together are (epsilon, delta)-differentially private in the private rows, if ``private``
        is True. A row is taken to be in the rows of every member.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}
        Which data sets count as neighbours.
    members : tuple of (str, float, float)
        Where each private member is, and its own epsilon and delta.
    unit : str
        What the guarantees protect: "row", or all rows of one person, by the name of the column of persons.
    unprotected : tuple of str
        Where predictors without a report are. They may have been fitted to private rows.
    leaks : tuple of str
        Why nothing is guaranteed: known leaks of members and of what is around them, a seed of the noise,
        ``unprotected`` members, fits that are not counted. Without any, nothing is proved.
    warnings : tuple of str
        What to know before quoting epsilon.
    """

    title: ClassVar = "Privacy report of an ensemble"
    mu = None  # that of its members may differ from the total

    epsilon: float
    delta: float
    neighboring: Neighboring
    members: tuple[tuple[str, float, float], ...]
    unit: str = "row"
    unprotected: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def _rows(self) -> list[tuple[str, str]]:
        verdict = f"({self.epsilon:.6g}, {self.delta:.3g})-differential privacy of all members together"
        return [
            ("guarantee", verdict if self.private else f"NO GUARANTEE; without the leaks: {verdict}"),
            ("neighbours", relation_words(self.neighboring, self.unit)),
            *((where, f"epsilon {epsilon:.6g}, delta {delta:.3g}") for where, epsilon, delta in self.members),
            *((where, "no guarantee") for where in self.unprotected),
            *(("warning", warning) for warning in self.warnings),
        ]


def ensemble_report(ensemble: object) -> EnsembleReport:
    """Report the guarantee of all private members of a fitted ensemble together.

    The members of a ``BaggingClassifier``, ``VotingClassifier``, ``OneVsRestClassifier``,
    ``CalibratedClassifierCV``, ``Pipeline`` or similar object are private fits to the same rows. Each has its
    own ``privacy_``, and their privacy losses add up. This function finds the members and composes them.

    Parameters
    ----------
    ensemble : estimator, or sequence of estimators
        A fitted estimator that contains fitted estimators of this package, or several such.

    Returns
    -------
    EnsembleReport
        The total, and where each member is. Its delta is the largest of members with an exact ``mu``, plus
        those of others.

    Raises
    ------
    ValueError
        If there is no private member, or if members differ in ``neighboring`` or in what they protect.

    Notes
    -----
    *Guarantee*: members with an exact ``mu`` compose as Gaussian differential privacy, to the root of the sum
    of ``mu**2``. Others add their epsilon and delta. This is a guarantee for members that were fixed in
    advance; a :class:`~skmixdp.privacy.PrivacyLedger` also covers fits that were chosen by the results of
    earlier ones. It covers the members that the object still contains. If ``check_pipeline`` finds a leak, or
    fits that were made and dropped, the first line is NO GUARANTEE. What it does not find may still leak.

    References
    ----------
    Dong, Roth and Su 2022, "Gaussian differential privacy", Corollary 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import VotingClassifier
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.inspection import ensemble_report
    >>> X, y = load_iris(return_X_y=True)
    >>> head = MixedDPLogisticRegression("noisy-gd", epsilon=1.0, delta=1e-3, classes=[0, 1, 2])
    >>> report = ensemble_report(VotingClassifier([("a", head), ("b", head)]).fit(X, y))
    >>> round(report.epsilon, 2), len(report.members)
    (1.51, 2)
    """
    members = list(_members(ensemble, "ensemble", set()))
    reports = [(where, member.privacy_) for where, member in members if report_of(member)]
    unprotected = tuple(where for where, member in members if not report_of(member))
    if not reports:
        raise ValueError(
            f"ensemble={type(ensemble).__name__} contains no fitted estimator with privacy_; pass a fitted "
            "ensemble of estimators of this package."
        )
    for name, values, remedy in (
        ("neighboring", {relation_name(report.neighboring) for _, report in reports}, "the same one"),
        ("unit", {report.unit for _, report in reports}, "the same groups, or all without"),
    ):
        if len(values) > 1:
            raise ValueError(
                f"the members have {name}={' and '.join(sorted(map(repr, values)))}, and such guarantees do "
                f"not add up; fit all members with {remedy}."
            )
    exact = [report for _, report in reports if report.mu is not None]
    others = [report for _, report in reports if report.mu is None]
    epsilon, delta = (math.fsum(getattr(report, name) for report in others) for name in ("epsilon", "delta"))
    if exact:
        largest = max(report.delta for report in exact)
        epsilon += gaussian.epsilon_for(math.sqrt(math.fsum(report.mu**2 for report in exact)), largest)
        delta += largest
    leaks = [leak for _, report in reports for leak in report.leaks]
    if seeded := [where for where, report in reports if report.noise == "seeded"]:
        leaks.append(f"the noise of {', '.join(seeded)} comes from a seed")
    if unprotected:
        leaks.append(f"{', '.join(unprotected)} may have been fitted to private rows without noise")
    report = EnsembleReport(
        epsilon=epsilon,
        delta=delta,
        neighboring=reports[0][1].neighboring,
        members=tuple((where, report.epsilon, report.delta) for where, report in reports),
        unit=reports[0][1].unit,
        unprotected=unprotected,
        leaks=tuple(leaks),
    )
    return with_findings(report, ensemble)


def with_findings(report: _Report, estimator: BaseEstimator) -> _Report:
    """Add the findings of :func:`~skmixdp.preprocessing.check_pipeline` for an estimator to its report."""
    parts = estimator if isinstance(estimator, (list, tuple)) else [estimator]
    findings = PipelineReport(tuple(finding for part in parts for finding in check_pipeline(part)))
    return replace(
        report,
        leaks=tuple(dict.fromkeys((*report.leaks, *findings.in_words("leak", "uncounted")))),
        warnings=(*report.warnings, *findings.in_words("note")),
    )


def _members(value: Any, where: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Path and object of each private member, and of each predictor without a report."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (list, tuple)):
        for i, entry in enumerate(value):
            yield from _members(entry, f"{where}[{i}]", seen)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _members(entry, f"{where}[{key!r}]", seen)
    elif report_of(value) is not None:
        yield where, value
    elif hasattr(value, "calibrators"):  # a part of CalibratedClassifierCV that is no estimator
        yield from _members(value.estimator, f"{where}.estimator", seen)
        yield f"{where}.calibrators", value.calibrators
    elif hasattr(value, "get_params"):
        try:
            check_is_fitted(value)
        except (NotFittedError, TypeError):  # the template of members, or an object without a method fit
            return
        inner = [
            member
            for name, entry in vars(value).items()
            # The fitted attributes, and the steps of a pipeline.
            if (name.endswith("_") and not name.startswith("_")) or name == "steps"
            for member in _members(entry, f"{where}.{name}", seen)
        ]
        if not inner and callable(getattr(value, "predict", None)):
            inner = [(where, value)]
        yield from inner
