"""The result of a private regression: coefficients, intervals, and facts about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from .._utils.documents import Section, as_html
from .._utils.validation import check
from ._questions import INTERCEPT, Questions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..privacy import PrivacyReport

Array = NDArray[Any]

#: Names of the columns of the summary in dictionaries.
_FIELDS = "coef", "std_err", "z", "p", "p_holm", "low", "high", "from_noise"


def _number(value: float) -> str:
    return f"{value:.4g}"


def named(term: object) -> str:
    """The name of a coefficient, preceded by its class if it has one."""
    return ": ".join(term) if isinstance(term, tuple) else str(term)


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult(Questions):
    """Coefficients of a regression of private rows, with standard errors that include the noise.

    Everything follows from released numbers, so it may be published, and costs nothing more.

    Parameters
    ----------
    params : Series of shape (p,)
        Coefficients in the columns' own units; those of more than two classes are indexed by class and name.
    covariance : array of shape (p, p)
        Covariance of the coefficients, noise included.
    sampling_covariance : array of shape (p, p)
        The part of it that a regression without privacy would have.
    identified : Series of bool, shape (p,)
        Whether the data tell the coefficient. If not, columns are collinear or noise hides them.
    hidden_columns : tuple of str
        Columns left out, since noise hides their spread. Then no coefficient is identified, as all may be
        correlated with these.
    family, cov_type : str
        The model, and the kind of the standard errors.
    classes : tuple of str
        The classes, the first of which is the reference; empty without classes.
    n_private, n_public : int
        Numbers of private rows, or persons, and of public rows.
    unit : str
        "row", or what persons are called.
    confidence : float
        Coverage of the intervals.
    references : dict of str to str
        The category of each encoded column against which the others are compared.
    notes : tuple of str
        What to know before the numbers are used.
    privacy_ : PrivacyReport
        The guarantee and its assumptions.
    spreads : Series of shape (d,)
        Spread of each column, declared or noisy.
    encoded : object or None
        The encoder, without reference categories.
    """

    params: pd.Series
    covariance: Array
    sampling_covariance: Array
    identified: pd.Series
    hidden_columns: tuple[str, ...]
    family: str
    cov_type: str
    classes: tuple[str, ...]
    n_private: int
    n_public: int
    unit: str
    confidence: float
    references: dict[str, str]
    notes: tuple[str, ...]
    privacy_: PrivacyReport
    spreads: pd.Series
    encoded: Any = None

    @property
    def no_guarantee(self) -> str:
        """The first line of the text, which names known leaks; empty without leaks."""
        return self.privacy_.no_guarantee

    @property
    def sampling_bse(self) -> pd.Series:
        """The part of the standard errors that a regression without privacy would have."""
        return self._series(np.sqrt(np.diag(self.sampling_covariance)))

    @property
    def zvalues(self) -> pd.Series:
        """Coefficients divided by their standard errors; NaN if not identified."""
        return (self.params / self.bse).where(self.identified)

    @property
    def pvalues(self) -> pd.Series:
        """P-values of each coefficient being 0, two-sided, from the normal distribution."""
        return self._series(2 * norm.sf(np.abs(self.zvalues)))

    def adjusted_pvalues(self) -> pd.Series:
        """P-values adjusted for testing all slopes, by the method of Holm (1979); NaN for intercepts."""
        slopes = self.pvalues[self.slopes].dropna().sort_values()
        steps = slopes * np.arange(len(slopes), 0, -1)
        return steps.cummax().clip(upper=1.0).reindex(self.params.index)

    def conf_int(self, *, confidence: float | None = None) -> pd.DataFrame:
        """Confidence intervals, with columns ``low`` and ``high``; NaN if not identified.

        Parameters
        ----------
        confidence : float or None, default=None
            Coverage of each interval, such as 0.95; None is that of the result. statsmodels has alpha
            instead, which is 1 minus this.

        Returns
        -------
        DataFrame of shape (p, 2)
            An interval for each coefficient.

        Raises
        ------
        ValueError
            For a confidence below 0.5 or from 1 up.
        """
        half = norm.ppf(0.5 + self._confidence(confidence) / 2) * self.bse.where(self.identified)
        return pd.DataFrame({"low": self.params - half, "high": self.params + half})

    def cov_params(self) -> pd.DataFrame:
        """Covariance (p, p) of the coefficients, including the noise."""
        return pd.DataFrame(self.covariance, self.params.index, self.params.index)

    def odds_ratios(self, *, confidence: float | None = None) -> pd.DataFrame:
        """Odds ratios per unit of each column, with their intervals.

        Parameters
        ----------
        confidence : float or None, default=None
            Coverage of each interval; None is that of the result.

        Returns
        -------
        DataFrame
            Columns ``odds_ratio``, ``low`` and ``high``, one row for each slope.

        Raises
        ------
        ValueError
            For other families than ``"logistic"``, which have no odds.
        """
        return self._ratios("odds", "logistic", confidence)

    def rate_ratios(self, *, confidence: float | None = None) -> pd.DataFrame:
        """Rate ratios per unit of each column, with their intervals.

        Parameters
        ----------
        confidence : float or None, default=None
            Coverage of each interval; None is that of the result.

        Returns
        -------
        DataFrame
            Columns ``rate_ratio``, ``low`` and ``high``, one row for each slope.

        Raises
        ------
        ValueError
            For other families than ``"poisson"``, which have no rates.
        """
        return self._ratios("rate", "poisson", confidence)

    def _ratios(self, what: str, family: str, confidence: float | None) -> pd.DataFrame:
        if self.family != family:
            raise ValueError(
                f"{what} ratios need family={family!r}, and this is {self.family!r}; use params."
            )
        intervals = self.conf_int(confidence=confidence)
        table = pd.concat([self.params.rename(f"{what}_ratio"), intervals], axis=1)
        return table[self.slopes].apply(np.exp)

    def summary(self) -> pd.DataFrame:
        """All numbers in a table, one row for each coefficient.

        Returns
        -------
        DataFrame
            Columns ``coef``, ``std err``, ``z``, ``P>|z|``, ``P (Holm)``, the ends of the interval, and
            ``from noise``: how much narrower the interval would be without privacy, as a part of its width.
            If columns are left out, its ``attrs["note"]`` says why there are no intervals.
        """
        tail = (1 - self.confidence) / 2
        interval = self.conf_int()
        table = pd.DataFrame(
            {
                "coef": self.params,
                "std err": self.bse,
                "z": self.zvalues,
                "P>|z|": self.pvalues,
                "P (Holm)": self.adjusted_pvalues(),
                f"[{tail:.3g}": interval["low"],
                f"{1 - tail:.3g}]": interval["high"],
                "from noise": 1 - self.sampling_bse / self.bse,
            }
        )
        if self.hidden_columns:
            table.attrs["note"] = self._suspended
        return table

    def to_dict(self) -> dict[str, Any]:
        """All results as a dictionary of JSON types, with None for missing numbers.

        Returns
        -------
        dict
            ``coefficients`` has a dictionary for each coefficient, ``covariance`` is a list of lists, and
            ``privacy`` is the report.
        """
        table = self.summary()
        coefficients = [
            {
                "name": term[-1] if isinstance(term, tuple) else term,
                **({"class": term[0]} if isinstance(term, tuple) else {}),
                "identified": bool(self.identified.iloc[place]),
                **{
                    name: float(value) if np.isfinite(value) else None
                    for name, value in zip(_FIELDS, table.iloc[place], strict=True)
                },
            }
            for place, term in enumerate(table.index)
        ]
        names = "family", "cov_type", "confidence", "n_private", "n_public", "unit", "references"
        return {
            **{name: vars(self)[name] for name in names},
            **{name: list(vars(self)[name]) for name in ("classes", "hidden_columns", "notes")},
            "coefficients": coefficients,
            "covariance": self.covariance.tolist(),
            "privacy": self.privacy_.to_dict(),
        }

    def plot(self, *, per: str = "spread", ax: Axes | None = None) -> Axes:
        """Plot the slopes with their intervals.

        Parameters
        ----------
        per : {"spread", "unit"}, default="spread"
            Effects per spread of each column, which can be compared, or per unit as in ``params``.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        ValueError
            For another ``per``.
        """
        from ..inspection._evaluation import draw_coefficients  # takes time, and few results are drawn

        check("per", per, "spread", "unit")
        return draw_coefficients(self, per, ax)

    @property
    def slopes(self) -> pd.Series:
        """Whether each coefficient is a slope, and not the constant."""
        terms = self.params.index.get_level_values(-1)
        return pd.Series(terms != INTERCEPT, self.params.index)

    def _series(self, values: object) -> pd.Series:
        return pd.Series(np.asarray(values), self.params.index)

    def _heading(self) -> list[str]:
        models = {"logistic": "Logistic", "poisson": "Poisson"}
        model = f"{models[self.family]} regression" if self.family in models else "Least squares"
        counted = "rows" if self.unit == "row" else "persons"
        public = f", {self.n_public} public rows" if self.n_public else ""
        head = [
            f"{model}, private: epsilon {self.privacy_.epsilon:.3g}, delta {self.privacy_.delta:.3g}",
            f"{self.n_private} private {counted}{public}; {self.cov_type} standard errors, "
            f"{self.confidence:.0%} intervals",
        ]
        if self.family == "logistic":
            head.append(f"log-odds against class {self.classes[0]}")
        if self.family == "poisson":
            head.append("log of the rate of counts, per unit of exposure")
        if self.references:
            head.append("categories against " + ", ".join(f"{k}={v}" for k, v in self.references.items()))
        if self.hidden_columns:
            head.append(self._suspended)
        return [self.no_guarantee, *head] if self.no_guarantee else head

    @property
    def _suspended(self) -> str:
        """Why no interval is stated where columns are left out."""
        return (
            f"no intervals: noise hides {', '.join(self.hidden_columns)}, which the model lacks, "
            "so any other coefficient may be off; declare it by scale=, as Typical(0, 0.5) for zeros and "
            "ones, or leave the column out of X"
        )

    def __str__(self) -> str:
        table = self.summary().to_string(float_format=_number, na_rep="-")
        return "\n".join([*self._heading(), "", table, *(["", *self.notes] if self.notes else [])])

    def _repr_html_(self) -> str:
        return as_html("", self._sections())

    def _sections(self) -> list[Section]:
        table = self.summary()
        rows = [
            (named(term), *("-" if np.isnan(value) else _number(value) for value in row))
            for term, row in zip(table.index, table.to_numpy(), strict=True)
        ]
        return [Section("", rows, ("", *table.columns), paragraphs=self._heading(), notes=self.notes)]

    __repr__ = __str__
