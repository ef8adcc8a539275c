"""A model card: a page on a fitted model for its users."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._utils.documents import Section, as_markdown, as_page, sentence
from .._utils.models import FittedSearch, Model, classes_of, has_several_labels, report_of, row_map_of
from .._utils.validation import Kind, as_float, check
from .._version import __version__
from ..privacy import PrivacyReport
from ..privacy.report import Statement, attack_section
from ._ensembles import ensemble_report, with_findings

_TEXT = Kind("a string", lambda value: isinstance(value, str))
_NUMBER = Kind("a number", lambda value: as_float(value) is not None)

#: Assumptions of the guarantee of any model.
_ASSUMPTIONS = (
    "Whatever prepared the rows learned nothing from private ones. The card names the leaks that are known; "
    "there may be others.",
    "What is listed as public was known or decided without looking at the private rows.",
    "Only the model and its report were published. Scores on private rows, plots of them, and models that "
    "were tried and dropped are further releases.",
    "Earlier training on the same people, such as of the network that made the features, has its own cost.",
)

#: The row of a report that says what an attacker may guess.
_WORDS = "an attacker"
#: The rows of a report that describe the data.
_DATA: tuple[str, ...] = ("rows", "persons", "public rows", "ledger")

#: What a model does to rows, by the attribute of its row map, in order.
_PREPARED = {
    "columns": "standardises columns",
    "unit_first": "scales rows to unit length",
    "mean": "subtracts a centre",
    "whitening": "shrinks directions within classes",
    "normalize": "bounds the lengths of rows",
}


@dataclass(frozen=True)
class ModelCard:
    """Model card of a fitted estimator; it prints as Markdown and converts to an HTML page.

    Attributes
    ----------
    no_guarantee : str
        The first line of the card if a leak is known, which it names; otherwise empty. That no leak is known
        proves nothing.
    title : str
        Name of the model.
    description : str
        What it does.
    intended_use : str
        What it is for, and what not.
    date : str
        Day on which the card was written, in UTC.
    private : bool
        Whether the guarantee holds.
    attack_success : float
        Largest probability with which an attacker guesses right, as in the report; 1 with a known leak.
    model : dict of str to str
        Facts on the model: class, algorithm, preprocessing, sizes.
    guarantee : dict of str to str
        The privacy report, line by line.
    treated_as_public : tuple of str
        Everything that the guarantee does not protect.
    assumptions : tuple of str
        What the guarantee rests on.
    metrics : tuple of dict
        Name, value and rows of each metric. Scores whose cost was accounted for say how.
    warnings : tuple of str
        What to know before quoting epsilon.
    """

    no_guarantee: str
    title: str
    description: str
    intended_use: str
    date: str
    private: bool
    attack_success: float
    model: dict[str, str]
    guarantee: dict[str, str]
    treated_as_public: tuple[str, ...]
    assumptions: tuple[str, ...]
    metrics: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All fields, as values that JSON supports."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    def to_markdown(self, *, license: str | None = None) -> str:  # noqa: A002 - what model hubs call it
        """The card as Markdown, with texts of the caller escaped.

        Parameters
        ----------
        license : str or None, default=None
            License of the model, such as "mit". The card then begins with the YAML front matter that model
            hubs read. It has a first entry ``no_guarantee`` if a leak is known.

        Returns
        -------
        str
            The card.

        Raises
        ------
        ValueError
            For a license that is no text.
        """
        check("license", license, _TEXT, None)
        card = as_markdown(self.title, self.no_guarantee, self._sections())
        if license is None:
            return card
        # Front matter in YAML, with texts spelt as in JSON.
        lines = [] if self.private else [f"no_guarantee: {json.dumps(self.no_guarantee)}"]
        lines += [f"license: {json.dumps(license)}", "library_name: skmixdp", "tags:", "- sklearn"]
        task = "classification" if {"classes", "labels"} & self.model.keys() else "regression"
        lines += [f"- tabular-{task}", *(["- differential-privacy"] if self.private else [])]
        return "\n".join(["---", *lines, "---", "", card])

    def to_html(self) -> str:
        """The card as a page in plain words, as one file without scripts or links, for screens and print."""
        return as_page(self.title, self.no_guarantee, self._sections())

    def _sections(self) -> list[Section]:
        lines = {name: line for name, line in self.guarantee.items() if name != _WORDS}
        data = {name: lines.pop(name) for name in _DATA if name in lines}
        public = [*map(sentence, self.treated_as_public)]
        assumed = (
            *self.assumptions,
            "Predictions protect the rows that the model was trained on, not the rows that are predicted.",
        )
        scores = [(entry["name"], f"{entry['value']:.4g}", entry["rows"]) for entry in self.metrics]
        return [
            Section(paragraphs=[*filter(None, [self.description]), f"Written on {self.date}."]),
            attack_section(self.attack_success, self.guarantee.get(_WORDS, "")),
            Section("Model", [*self.model.items()]),
            Section("Data", [*data.items()]),
            Section("Guarantee", [*lines.items()]),
            Section("Public: anyone may learn this from the model", bullets=public),
            Section("Not covered, and assumed", bullets=assumed),
            Section("Warnings", bullets=[*map(sentence, self.warnings)]),
            Section("Scores", scores, ("metric", "value", "rows") if scores else ()),
            Section("Use", paragraphs=[*filter(None, [self.intended_use])]),
        ]

    def __str__(self) -> str:
        return self.to_markdown()

    _repr_markdown_ = __str__


def model_card(
    estimator: BaseEstimator,
    *,
    title: str | None = None,
    description: str = "",
    intended_use: str = "",
    public_scores: Mapping[str, float] | None = None,
    accounted_scores: Mapping[str, tuple[float, str]] | None = None,
) -> ModelCard:
    """Write a card for a fitted model: guarantee, assumptions, what is public, and metrics.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator or search of this package. Also a fitted pipeline or ensemble of such; see
        :func:`ensemble_report`.
    title : str or None, default=None
        Name of the model; None is the name of its class, or that of the model in a pipeline.
    description, intended_use : str, default=""
        What the model does, and what it is for.
    public_scores : dict of str to float, or None, default=None
        Metrics on public rows.
    accounted_scores : dict of str to (float, str), or None, default=None
        Metrics on private rows that were released with noise, such as those of ``private_score``. The text
        says how each was accounted for.

    Returns
    -------
    ModelCard
        The card, which prints as Markdown.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        For scores that are not numbers, or accounted scores that do not say how.

    Notes
    -----
    *Guarantee*: a card contains the report, what :func:`~skmixdp.preprocessing.check_pipeline` finds, and
    what the caller passes. Its first line is NO GUARANTEE if a leak is known. There is no place for exact
    scores on private rows, since publishing them would be a release that no budget covers.

    References
    ----------
    Mitchell et al. 2019, "Model cards for model reporting".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> from skmixdp.inspection import model_card
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = MixedDPLogisticRegression().fit(X[100:], y[100:], X_pub=X[:50], y_pub=y[:50])
    >>> score = clf.score(X[50:100], y[50:100])  # public rows that were not trained on
    >>> card = model_card(clf, title="Digits", public_scores={"accuracy": score})
    >>> print(card.to_markdown()[:8])
    # Digits
    """
    check_is_fitted(estimator)
    for name, text in (("description", description), ("intended_use", intended_use)):
        check(name, text, _TEXT)
    check("title", title, _TEXT, None)
    stated = report_of(estimator)
    report = ensemble_report(estimator) if stated is None else with_findings(stated, estimator)
    own, counted = ("row", "private rows") if report.unit == "row" else ("id", "persons")
    assumptions = [f"Each person has one {own}. Someone with several {own}s is protected less."]
    if not isinstance(report, Statement) or report.n_public > 0:
        assumptions.append("The public rows are public: the guarantee does not cover them.")
    assumptions += _ASSUMPTIONS
    if isinstance(report, PrivacyReport):
        assumptions.append(f"The number of {counted}, {report.n_private}, is public.")
    lines = dict(row for row in report._rows() if row[0] not in ("warning", "treated as public"))
    if report._attack:
        lines[_WORDS] = report._attack
    return ModelCard(
        no_guarantee=report.no_guarantee,
        title=type(_model_of(estimator)[0]).__name__ if title is None else title,
        description=description,
        intended_use=intended_use,
        date=datetime.now(UTC).date().isoformat(),
        attack_success=report.attack_success,
        private=report.private,
        model=_facts(estimator),
        guarantee=lines,
        treated_as_public=report.treated_as_public if isinstance(report, Statement) else (),
        assumptions=tuple(assumptions),
        metrics=_metrics(public_scores or {}, accounted_scores or {}),
        warnings=tuple(report.warnings),
    )


def _model_of(estimator: Model) -> tuple[Any, list[str]]:
    """The model within pipelines and searches, and the classes of the steps before it."""
    head: Any = estimator.best_estimator_ if isinstance(estimator, FittedSearch) else estimator
    before: list[str] = []
    while isinstance(head, Pipeline):
        before += [type(step).__name__ for _, step in head.steps[:-1]]
        head = head.steps[-1][1]
    return head, before


def _facts(estimator: Model) -> dict[str, str]:
    head, before = _model_of(estimator)
    name, whole = type(head).__name__, type(estimator).__name__
    facts = {"class": name if head is estimator else f"{name} in {whole}"}
    if "algorithm" in (parameters := head.get_params(deep=False)):
        facts["algorithm"] = str(parameters["algorithm"])
    if isinstance(estimator, FittedSearch):
        facts["chosen parameters"] = str(estimator.best_params_)
    row_map = row_map_of(head)
    steps = [
        words
        for name, words in _PREPARED.items()
        # Arrays are compared with None, since they have no truth value.
        if row_map is not None and not any(getattr(row_map, name) is absent for absent in (None, False))
    ]
    facts["preprocessing"] = ", ".join([*before, *steps]) or "none"
    if hasattr(estimator, "n_features_in_"):
        facts["features"] = str(estimator.n_features_in_)
    if (classes := classes_of(estimator)) is not None:
        name = "labels" if has_several_labels(estimator) else "classes"
        facts[name] = ", ".join(map(str, classes))
    facts["made with"] = f"skmixdp {__version__}, scikit-learn {sklearn.__version__}"
    return facts


def _metrics(
    public: Mapping[str, float], accounted: Mapping[str, tuple[float, str]]
) -> tuple[dict[str, Any], ...]:
    for name, value in public.items():
        check(f"public_scores[{name!r}]", value, _NUMBER)
    for name, pair in accounted.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], str) or not pair[1]:
            raise ValueError(
                f"accounted_scores[{name!r}]={pair!r} must be a number and a text that says how its cost was "
                "accounted for; pass (0.9, 'noisy count, charged to the ledger')."
            )
        check(f"accounted_scores[{name!r}]", pair[0], _NUMBER)
    scores = [(name, value, "public") for name, value in public.items()]
    scores += [(name, value, f"private, accounted for: {how}") for name, (value, how) in accounted.items()]
    return tuple({"name": str(name), "value": float(value), "rows": rows} for name, value, rows in scores)
