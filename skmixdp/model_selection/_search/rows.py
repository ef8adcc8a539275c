"""The rows of a search, and how a trial is scored on them."""

from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from ..._utils.frames import some_rows
from ..._utils.validation import is_empty
from .._public import PublicScorer, hold_out, public_params, public_score


@dataclass(frozen=True, repr=False)
class SearchData:
    """Private rows, public rows to fit on, and how a trial is scored."""

    X: Any
    y: Any
    public: tuple[Any, Any] | None
    #: Without a scorer, a noisy sum of noise multiplier ``score_multiplier`` scores private rows.
    scorer: PublicScorer | None
    score_multiplier: float | None
    groups: Any = None
    #: Whether estimators have been fitted already, side by side.
    fitted: bool = False
    X_unlabeled: Any = None

    def fit(self, estimator: BaseEstimator) -> Any:
        """Fit an estimator on the rows, unless it was fitted with others."""
        return estimator if self.fitted else estimator.fit(self.X, self.y, **self.passed)

    @property
    def passed(self) -> dict[str, Any]:
        """Keyword arguments of a fit."""
        passed = {} if self.public is None else public_params(*self.public)
        more = {"groups": self.groups, "X_unlabeled": self.X_unlabeled}
        return passed | {name: value for name, value in more.items() if value is not None}

    def score(self, estimator: BaseEstimator) -> float:
        """The score by the scorer for public rows, or else by one noisy sum over the private rows."""
        if self.scorer is not None:
            return self.scorer(estimator)
        X, head = self.X, estimator
        while isinstance(head, Pipeline):
            X = head[:-1].transform(X) if len(head.steps) > 1 else X
            head = head.steps[-1][1]
        persons = {} if self.groups is None else {"groups": self.groups}
        return float(head.private_score(X, self.y, noise_multiplier=self.score_multiplier, **persons))


def metric_of(scoring: object) -> Any:
    """The metric that ``scoring`` names; None is the estimator's own."""
    return None if isinstance(scoring, str) and scoring in ("public", "private") else scoring


def rows_of(
    search: Any,
    X: object,
    y: object,
    X_pub: object,
    y_pub: object,
    groups: object,
    X_unlabeled: object,
    head: object,
) -> SearchData:
    """The rows of the trials."""
    public = None
    if not (is_empty(X_pub) and is_empty(y_pub)):
        joined = public_score(X_pub, y_pub)
        public = joined.X, joined.y
    everything = SearchData(X, y, public, None, None, groups, X_unlabeled=X_unlabeled)
    scoring = search.scoring
    if isinstance(scoring, str) and scoring == "private":
        if not hasattr(head, "private_score"):
            raise ValueError(
                f"scoring='private' needs noisy scores, which {type(head).__name__} does not have; "
                "pass scoring='public' and public rows."
            )
        return everything
    if public is None:
        raise ValueError(
            f"scoring={scoring!r} needs public rows to score on; pass X_pub and y_pub to fit, or "
            "scoring='private'."
        )
    train, test = hold_out(public[1], search.holdout, stratify=is_classifier(search.estimator))
    if len(test) == 0:
        raise ValueError(
            f"scoring={scoring!r} keeps public rows for scoring, and no class has two of them; pass more "
            "public rows, or scoring='private'."
        )
    rows, labels = public
    scorer = PublicScorer(some_rows(rows, test), labels[test], metric_of(scoring))
    return replace(everything, public=(some_rows(rows, train), labels[train]), scorer=scorer)
