"""What one asks of coefficients and their covariance: contrasts, predictions, marginal effects.

All of it is computed from released numbers.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import chi2, norm

from .._utils.process import own_state
from .._utils.validation import Number, check, check_finite, shown

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


def check_confidence(value: object) -> None:
    """Refuse a coverage outside of [0.5, 1)."""
    check("confidence", value, _CONFIDENCE, remedy="intervals at level alpha have a confidence of 1 - alpha")


def outputs_of(x: Array, beta: Array) -> Array:
    """Linear predictors (n, k) of rows (n, d + 1) with a constant."""
    return np.asarray(x @ beta.reshape(-1, x.shape[1]).T)


class Questions:
    """Questions about the coefficients of a result, see :class:`InferenceResult`."""

    params: pd.Series
    covariance: Array
    identified: pd.Series
    family: str
    classes: tuple[str, ...]
    confidence: float
    spreads: pd.Series
    encoded: Any

    @property
    def bse(self) -> pd.Series:
        """Standard errors, including the noise."""
        return pd.Series(np.sqrt(np.diag(self.covariance)), self.params.index)

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
        return self._table(names, values, covariance, rows != 0, self._confidence(confidence))

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
        table = self._table(names, values, covariance, np.ones_like(slopes, bool), level)
        if outcomes[0]:
            table.index = pd.MultiIndex.from_tuples(names, names=["class", "term"])
        return table

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

    def _table(
        self, names: list[Any], values: Array, covariance: Array, uses: Array, confidence: float
    ) -> pd.DataFrame:
        """Values (q,) with errors, tests and intervals; NaN if one that ``uses`` (q, p) is not identified."""
        stated = ~(uses & ~self.identified.to_numpy()).any(axis=1)
        errors = np.sqrt(np.diag(covariance))
        z = np.where(stated, values / errors, np.nan)
        half = norm.ppf(0.5 + confidence / 2) * np.where(stated, errors, np.nan)
        numbers = np.column_stack([values, errors, z, 2 * norm.sf(np.abs(z)), values - half, values + half])
        return pd.DataFrame(numbers, pd.Index(names), ["effect", "std_err", "z", "p", "low", "high"])

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
