"""The result of a private regression: coefficients, intervals, and facts about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import chi2, norm

from .._utils.documents import Section, as_html
from .._utils.process import own_state
from .._utils.validation import Number, check, check_finite, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..privacy import PrivacyReport

Array = NDArray[Any]

#: Name of the constant among the coefficients.
INTERCEPT = "intercept"

#: Coverage of intervals. Below one half, alpha is likely to be meant, of which coverage is 1 minus.
_CONFIDENCE = Number("a number from 0.5 to below 1, which is coverage", low=0.5, high=1, closed="left")

_ENDS = ["mean", "low", "high"]

#: Change of a linear predictor for a derivative, and of a coefficient in standard errors.
_SMALL = 1e-3
#: Smallest length of an effect that is divided by.
_TINY = 1e-300

#: Names of the columns of the summary in dictionaries.
_FIELDS = "coef", "std_err", "z", "p", "p_holm", "low", "high", "from_noise"


def check_confidence(value: object) -> None:
    """Refuse a coverage outside of [0.5, 1)."""
    check("confidence", value, _CONFIDENCE, remedy="intervals at level alpha have a confidence of 1 - alpha")


def outputs_of(x: Array, beta: Array) -> Array:
    """Linear predictors (n, k) of rows (n, d + 1) with a constant."""
    return np.asarray(x @ beta.reshape(-1, x.shape[1]).T)


def _number(value: float) -> str:
    return f"{value:.4g}"


def named(term: object) -> str:
    """The name of a coefficient, preceded by its class if it has one."""
    return ": ".join(term) if isinstance(term, tuple) else str(term)


@dataclass(frozen=True, eq=False, repr=False)
class InferenceResult:
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
    def bse(self) -> pd.Series:
        """Standard errors, including the noise."""
        return self._series(np.sqrt(np.diag(self.covariance)))

    @property
    def sampling_bse(self) -> pd.Series:
        """The part of the standard errors that a regression without privacy would have."""
        return self._series(np.sqrt(np.diag(self.sampling_covariance)))

    @property
    def zvalues(self) -> pd.Series:
        """Coefficients divided by their standard errors; NaN if not identified."""
        return self._tests()["z"]

    @property
    def pvalues(self) -> pd.Series:
        """P-values of each coefficient being 0, two-sided, from the normal distribution."""
        return self._tests()["p"]

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
        return self._tests(confidence)[["low", "high"]]

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

    def t_test(self, contrast: Any, *, confidence: float | None = None) -> pd.DataFrame:
        """Test contrasts of the coefficients one by one, at no cost.

        Parameters
        ----------
        contrast : str, dict, list of such, or array of shape (q, p)
            Names of coefficients, ``{name: weight}`` such as ``{"city=Ulm": 1, "city=Rome": -1}``, or weights
            of all coefficients. Those of several classes are named by pairs (class, name).
        confidence : float or None, default=None
            Coverage of each interval; None is that of the result.

        Returns
        -------
        DataFrame of shape (q, 6)
            Columns ``effect``, ``std_err``, ``z``, ``p``, ``low`` and ``high``; NaN for those that use a
            coefficient which is not identified.

        Raises
        ------
        ValueError
            For names that are no coefficients, and for weights of another shape.
        """
        rows, names = self._weights_of(contrast)
        values = rows @ self.params.to_numpy()
        covariance = rows @ self.covariance @ rows.T
        return self._table(pd.Index(names), values, covariance, rows != 0, self._confidence(confidence))

    def wald_test(self, contrast: Any) -> pd.Series:
        """Test that all contrasts are 0 together, at no cost.

        Parameters
        ----------
        contrast : str, dict, list of such, or array of shape (q, p)
            As for :meth:`t_test`.

        Returns
        -------
        Series
            ``chi2``, its degrees of freedom ``df``, and ``p``; NaN if a coefficient is not identified.

        Raises
        ------
        ValueError
            As for :meth:`t_test`, and for contrasts of which one follows from others.
        """
        rows, _ = self._weights_of(contrast)
        unknown = (rows != 0) & ~self.identified.to_numpy()
        covariance = rows @ self.covariance @ rows.T
        rank = int(np.linalg.matrix_rank(covariance))
        if rank < len(rows):
            raise ValueError(f"contrast has {len(rows)} rows of rank {rank}; leave out those that follow.")
        values = rows @ self.params.to_numpy()
        statistic = math.nan if unknown.any() else float(values @ np.linalg.solve(covariance, values))
        return pd.Series({"chi2": statistic, "df": float(rank), "p": float(chi2.sf(statistic, rank))})

    @own_state()
    def get_prediction(self, X: object, *, confidence: float | None = None) -> pd.DataFrame:
        """Mean outcomes for rows, with confidence intervals of these means, at no cost.

        The rows should be PUBLIC or made up: a prediction tells of its row.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows with the columns of the fit, or a table for its encoder.
        confidence : float or None, default=None
            Coverage of each interval; None is that of the result.

        Returns
        -------
        DataFrame of shape (n, 3)
            ``mean``, ``low`` and ``high``: probabilities of the second class, rates, or targets. For more
            than two classes, such columns for each class. NaN if a coefficient is not identified.

        Raises
        ------
        ValueError
            For rows with other columns.
        """
        level = self._confidence(confidence)
        x, beta = self._design(X), self.params.to_numpy()
        half = norm.ppf(0.5 + level / 2) if self.identified.all() else math.nan
        if len(self.classes) <= 2:
            # The ends are those of the linear predictor, so that they are possible values.
            error = half * np.sqrt(np.einsum("ij,jk,ik->i", x, self.covariance, x))
            linear = outputs_of(x, beta)[:, 0]
            ends = np.column_stack([linear, linear - error, linear + error])
            table = np.column_stack([self._means(end[:, np.newaxis]) for end in ends.T])
            return pd.DataFrame(table, columns=_ENDS)
        tables = {}
        for place, label in enumerate(self.classes):

            def of_class(beta: Array, place: int = place) -> Array:
                return self._means(outputs_of(x, beta))[:, place]

            slopes, value = self._slopes_of(of_class), of_class(beta)
            error = half * np.sqrt(np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes))
            ends = np.column_stack([value, np.clip(value - error, 0, 1), np.clip(value + error, 0, 1)])
            tables[label] = pd.DataFrame(ends, columns=_ENDS)
        return pd.concat(tables, axis=1)

    @own_state()
    def marginal_effects(self, X: object, *, confidence: float | None = None) -> pd.DataFrame:
        """Average marginal effects of columns on the mean outcome, by the delta method, at no cost.

        They are averages over PUBLIC or made-up rows. The effect of a column of zeros and ones is the
        difference between both, and that of other columns is per unit.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Rows with the columns of the fit, or a table for its encoder.
        confidence : float or None, default=None
            Coverage of each interval; None is that of the result.

        Returns
        -------
        DataFrame
            As for :meth:`t_test`, one row for each column, or for each pair of a class and a column.

        Raises
        ------
        ValueError
            For rows with other columns.
        """
        level = self._confidence(confidence)
        x = self._design(X)
        terms = list(self.spreads.index)
        outcomes = list(self.classes) if len(self.classes) > 2 else [""]

        def effects(beta: Array) -> Array:
            changes = []
            for j in range(1, x.shape[1]):
                outputs, effect = outputs_of(x, beta), beta.reshape(-1, x.shape[1])[:, j]
                if np.isin(x[:, j], (0.0, 1.0)).all():
                    low = outputs - x[:, j : j + 1] * effect
                    change = self._means(low + effect) - self._means(low)
                else:
                    size = max(float(np.linalg.norm(effect)), _TINY)
                    step = _SMALL * effect / size
                    change = (self._means(outputs + step) - self._means(outputs - step)) * (
                        size / (2 * _SMALL)
                    )
                changes.append(change.mean(axis=0))
            return np.concatenate(changes)

        values, slopes = effects(self.params.to_numpy()), self._slopes_of(effects)
        covariance = slopes @ self.covariance @ slopes.T
        names = [(label, term) if label else term for term in terms for label in outcomes]
        index = pd.MultiIndex.from_tuples(names, names=["class", "term"]) if outcomes[0] else pd.Index(names)
        return self._table(index, values, covariance, np.ones_like(slopes, bool), level)

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
        ends = {"low": f"[{tail:.3g}", "high": f"{1 - tail:.3g}]"}
        names = {"effect": "coef", "std_err": "std err", "p": "P>|z|", **ends}
        table = self._tests().rename(columns=names)
        table.insert(4, "P (Holm)", self.adjusted_pvalues())
        table["from noise"] = 1 - self.sampling_bse / self.bse
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

    def _design(self, X: object) -> Array:
        """Rows (n, d + 1) of a constant and the columns of the coefficients, in their units."""
        frame: Any = X if self.encoded is None else self.encoded.cells(X)
        terms = list(self.spreads.index)
        if hasattr(frame, "columns"):
            missing = [name for name in terms if name not in map(str, frame.columns)]
            if missing:
                raise ValueError(f"X lacks the columns {shown(missing)}; pass rows with those of the fit.")
            values = frame.rename(columns=str)[terms].to_numpy(np.float64)
        else:
            values = np.atleast_2d(np.asarray(frame, np.float64))
            if values.ndim != 2 or values.shape[1] != len(terms):
                raise ValueError(
                    f"X has shape {values.shape} and the coefficients {len(terms)} columns; pass rows with "
                    f"the columns {shown(terms)}."
                )
        check_finite(bool(np.isfinite(values).all()), "X")
        return np.column_stack([np.ones(len(values)), values])

    def _confidence(self, confidence: float | None) -> float:
        if confidence is None:
            return self.confidence
        check_confidence(confidence)
        return confidence

    def _weights_of(self, contrast: Any) -> tuple[Array, list[str]]:
        """Weights (q, p) of contrasts of the coefficients, and their names."""
        names = list(self.params.index)
        if isinstance(contrast, (str, tuple, Mapping)):
            contrast = [contrast]
        if isinstance(contrast, list):
            contrast = [{each: 1.0} if isinstance(each, (str, tuple)) else each for each in contrast]
        if isinstance(contrast, list) and contrast and all(isinstance(each, Mapping) for each in contrast):
            rows = np.zeros((len(contrast), len(names)))
            for row, each in zip(rows, contrast, strict=True):
                for name, weight in each.items():
                    if name not in names:
                        raise ValueError(
                            f"the contrast names {shown(name)}, which is no coefficient; see params.index."
                        )
                    row[names.index(name)] = weight
            texts = [[f"{weight:+g} {name}" for name, weight in each.items()] for each in contrast]
            return rows, [" ".join(text) for text in texts]
        try:
            rows = np.atleast_2d(np.asarray(contrast, np.float64))
        except (TypeError, ValueError):
            rows = np.empty((0, 0))
        if rows.ndim != 2 or rows.shape[1] != len(names) or not np.all(np.isfinite(rows)):
            raise ValueError(
                f"contrast={shown(contrast)} must be names of coefficients, a dict of name: weight, a list "
                f"of such, or an array (q, {len(names)}) of finite weights."
            )
        return rows, [f"c{number}" for number in range(len(rows))]

    def _tests(self, confidence: float | None = None) -> pd.DataFrame:
        """The table of the coefficients one by one."""
        uses = np.eye(len(self.params), dtype=bool)
        values, level = self.params.to_numpy(), self._confidence(confidence)
        return self._table(self.params.index, values, self.covariance, uses, level)

    def _table(
        self, index: pd.Index, values: Array, covariance: Array, uses: Array, confidence: float
    ) -> pd.DataFrame:
        """Values (q,) with errors, tests and intervals; NaN if one that ``uses`` (q, p) is not identified."""
        stated = ~(uses & ~self.identified.to_numpy()).any(axis=1)
        errors = np.sqrt(np.diag(covariance))
        z = np.where(stated, values / errors, np.nan)
        half = norm.ppf(0.5 + confidence / 2) * np.where(stated, errors, np.nan)
        numbers = np.column_stack([values, errors, z, 2 * norm.sf(np.abs(z)), values - half, values + half])
        return pd.DataFrame(numbers, index, ["effect", "std_err", "z", "p", "low", "high"])

    def _means(self, outputs: Array) -> Array:
        """Means (n, k) of outcomes from linear predictors: probabilities, rates or targets."""
        if self.family == "gaussian":
            return outputs
        if self.family == "poisson":
            return np.exp(outputs)
        probabilities = softmax(np.column_stack([np.zeros(len(outputs)), outputs]), axis=1)
        return np.asarray(probabilities[:, 1:] if len(self.classes) == 2 else probabilities)

    def _slopes_of(self, function: Callable[[Array], Array]) -> Array:
        """Derivatives (q, p) of a function of the coefficients."""
        beta, steps = self.params.to_numpy(), _SMALL * self.bse.to_numpy()
        columns = []
        for j, step in enumerate(steps):
            moved = step * (np.arange(len(beta)) == j)
            columns.append((function(beta + moved) - function(beta - moved)) / (2 * step))
        return np.column_stack(columns)

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
