"""Pipelines that end in a private head, and set their own routing."""

from dataclasses import replace
from typing import Any, ClassVar

import pandas as pd
import sklearn
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .._engine import Transaction, charging_steps, future_transaction, reserved
from .._rows.table import groups_of, labels_of
from .._utils.frames import n_rows_of
from .._utils.lazy_imports import annex
from .._utils.models import report_of
from .._utils.process import own_state
from .._utils.validation import shown
from ..preprocessing import check_pipeline
from ..privacy.notebook import GuaranteeBoxMixin
from ..privacy.report import first_line
from ._base import PrivateEstimator, current_checkpoint
from ._row_mapping import current_pipeline
from ._saving.saving import SavingMixin

#: What transformers read from the private rows.
_COLUMNS = "the number and the names of the columns before preprocessing"


def private_pipeline(*steps: object, memory: object = None, verbose: bool = False) -> "PrivatePipeline":
    """Make a pipeline of transformers and a private head, without any routing to set.

    Parameters
    ----------
    *steps : estimators
        Transformers such as :class:`~skmixdp.preprocessing.TableEncoder` or
        :class:`~skmixdp.preprocessing.PublicOnly`, and a head such as
        :class:`~skmixdp.MixedDPLogisticRegression`.
    memory : str, object or None, default=None
        As in scikit-learn's ``make_pipeline``. A folder would hold transformed private rows.
    verbose : bool, default=False
        Whether to print how long each step takes.

    Returns
    -------
    PrivatePipeline
        The pipeline. Its steps have the names of their classes in lower case.

    Raises
    ------
    TypeError
        If the last step is no private estimator of this library.

    Examples
    --------
    >>> import pandas as pd
    >>> from skmixdp import MixedDPLogisticRegression, private_pipeline
    >>> from skmixdp.preprocessing import TableEncoder
    >>> X = pd.DataFrame({"age": [18.5 + i for i in range(60)], "city": ["Bonn", "Ulm", "Rome"] * 20})
    >>> y = X["age"] > 50
    >>> model = private_pipeline(TableEncoder(), MixedDPLogisticRegression(delta=1e-3))
    >>> model.fit(X[1::2], y[1::2], X_pub=X[::2], y_pub=y[::2]).predict(X[:2]).tolist()
    [False, False]
    >>> model.privacy_.n_public
    30
    """
    if not steps or not isinstance(steps[-1], PrivateEstimator):
        raise TypeError(
            f"the last step, {shown(steps[-1]) if steps else 'of none'}, must be a private estimator of this "
            "library, such as MixedDPLogisticRegression()."
        )
    if has_fit_parameter(steps[-1], "sample_weight"):
        with sklearn.config_context(enable_metadata_routing=True):
            steps[-1].set_fit_request(sample_weight=True)
    named = make_pipeline(*steps).steps
    return PrivatePipeline(named, transform_input=["X_pub", "X_unlabeled"], memory=memory, verbose=verbose)


class PrivatePipeline(SavingMixin, GuaranteeBoxMixin, Pipeline):  # type: ignore[misc]
    """A scikit-learn pipeline that ends in a private head; :func:`private_pipeline` makes it.

    ``fit`` passes ``X_pub`` and ``y_pub`` to all steps that take them, and transforms ``X_pub`` like ``X``.
    It transforms ``X_unlabeled`` too, which the head takes. It does so with metadata routing switched on or
    off, in searches and cross-validation too.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and steps. The last one is a private estimator.
    transform_input : list of str or None, default=None
        ``["X_pub", "X_unlabeled"]`` transforms the public rows before they reach a step.
    memory : str, object or None, default=None
        As in scikit-learn's ``Pipeline``.
    verbose : bool, default=False
        Whether to print how long each step takes.

    Attributes
    ----------
    privacy_ : PrivacyReport
        The report of the head, which also lists what transformers read. It is absent if several steps have a
        budget; :func:`~skmixdp.inspection.ensemble_report` adds these up.
    importances_ : Series of shape (n_columns,)
        Importance of each column of the table, most first, if the head is an additive model.

    Notes
    -----
    *Guarantee*: that of the head, if :func:`~skmixdp.preprocessing.check_pipeline` rightly finds no step that
    learns from private rows.
    """

    #: Searches look for this, since other pipelines pass public rows on only with metadata routing.
    _sets_routing: ClassVar = True

    _saved: ClassVar[tuple[str, ...]] = ()

    def fit(self, X: object, y: object = None, **params: object) -> "PrivatePipeline":
        """Fit the transformers, and then the head.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            PRIVATE rows.
        y : array-like of shape (n_samples,)
            Their labels or targets.
        **params : dict
            ``X_pub``, ``y_pub``, ``X_unlabeled`` and other arguments of the head's ``fit``.

        Returns
        -------
        self : PrivatePipeline
            Fitted pipeline.

        Raises
        ------
        ValueError, TypeError
            Whatever a step refuses, before its noise is drawn and its ledger charged.
        BudgetExceededError
            If a ledger does not allow the releases of all steps. Nothing is released or charged then.

        Notes
        -----
        If several steps have a ledger, all their charges are reserved together before the first release. Each
        step replaces its charge by its own. If a step fails before its release, what was reserved for it and
        for later steps is taken back. Charges of heads with ``batch_size`` are known beforehand with
        ``n_steps`` or ``noise_multiplier`` and without ``groups``; those of ``ModelMix`` never. What is
        reserved for others is a full batch with their budget. If the ledger has no room for the difference,
        they are refused after the steps before them were released.
        """
        with own_state():
            passed = {name: value for name, value in params.items() if value is not None}
            # An encoder takes rows out of files, which may hold their labels and ids.
            y = labels_of(X, y)
            if (groups := groups_of(X, passed.get("groups"))) is not None:
                passed["groups"] = groups
            with sklearn.config_context(enable_metadata_routing=True), reserved(self._charges(X, passed)):
                token = current_pipeline.set(self)
                try:
                    super().fit(X, y, **passed)
                finally:
                    current_pipeline.reset(token)
            head = self._final_estimator
            if len(self.steps) > 1:
                public = (*head.privacy_.treated_as_public, _COLUMNS)
                head.privacy_ = replace(head.privacy_, treated_as_public=public)
            return self

    def _charges(self, X: Any, passed: dict[str, Any]) -> list[Transaction]:
        """The charges that the steps will make to ledgers, if several steps make charges."""
        releases = charging_steps(self)
        if len(releases) < 2 or current_checkpoint.get() is not None:
            return []
        n_rows = None if "groups" in passed else n_rows_of(X)
        return [future_transaction(release, n_rows) for release in releases]

    @property
    def privacy_(self) -> Any:
        """The report of the head; not available if other steps have reports too."""
        reports = [report for _, step in self.steps if (report := report_of(step)) is not None]
        if len(reports) != 1:
            raise AttributeError(
                f"{len(reports)} steps have a privacy report; fit the pipeline, and add up several by "
                "skmixdp.inspection.ensemble_report(pipeline)."
            )
        return reports[0]

    @available_if(lambda pipeline: hasattr(pipeline._final_estimator, "explain"))  # type: ignore[untyped-decorator]
    @own_state()
    def explain(self, X: Any) -> pd.DataFrame:
        """What each column of the table adds to the outputs, for each row, if the head is an additive model.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            Rows. What is explained of PRIVATE rows is a release that no budget covers.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns + n_interactions)
            Parts of the logits or of the prediction. The sum over these and the intercept of the head is
            ``decision_function(X)``, or ``predict(X)`` of a regression. With several outputs, the first
            level of the columns is the output.

        Notes
        -----
        *Guarantee*: none for the rows that are explained; keep what is explained as private as they are.
        """
        check_is_fitted(self)
        rows = X
        for _, _, step in self._iter(with_final=False):
            rows = step.transform(rows)
        parts: pd.DataFrame = self._final_estimator._explained(rows, self)
        return parts.set_axis(X.index, axis=0) if hasattr(X, "index") and hasattr(X, "iloc") else parts

    @property
    def importances_(self) -> pd.Series:
        """Importance of each column of the table, most first, if the head is an additive model.

        It is the standard deviation of what the column adds, over the released or public distribution.
        """
        return pd.Series(self._final_estimator._effects_on(self).usual().importances(), name="importance")

    def to_onnx(self, *, dtype: str = "float64") -> Any:
        """The fitted pipeline as one ONNX model, from raw rows to predictions.

        A table has an input (n_samples, 1) for each column, under its name: texts for categories, with "" for
        missing ones, and numbers for the rest, with NaN for missing ones. Truth values are 0 and 1, and dates
        are days since 1970 in UTC. Categories are spelt as in ``columns_`` of the encoder. Pipelines of
        arrays have the input ``X``. Outputs are those of the head's ``to_onnx``, with ``_`` after a name that
        a column has. The metadata have the report under ``privacy``, or one for each step that has a budget.

        Parameters
        ----------
        dtype : {"float64", "float32"}, default="float64"
            Type of the numbers that go in and come out, and of all computations. "float64" agrees with
            ``predict_proba`` to about 1e-12, and "float32" to about 1e-5. Times of the day need "float64".

        Returns
        -------
        onnx.ModelProto
            The model.

        Raises
        ------
        NotFittedError
            If the pipeline is not fitted.
        ImportError
            If the package onnx is missing.
        TypeError
            For steps that have no form in ONNX, such as hashed words, and names of columns that no input can
            have. The error names them.
        """
        check_is_fitted(self)
        return annex("to_onnx")(self, dtype)

    def to_sklearn(self) -> Any:
        """The fitted pipeline with classes of scikit-learn and functions of NumPy, pandas and Python alone.

        It takes frames of pandas and arrays. Cells of tables are read as
        :class:`~skmixdp.preprocessing.TableEncoder` reads them, whatever the type of their column: numbers,
        truth values, texts, dates, moments, durations and missing cells. Other cells are errors here, such
        as complex numbers, texts of dates like ``2020-W01-1``, and numbers among long texts that are not
        whole.

        Returns
        -------
        sklearn.pipeline.Pipeline
            The fitted pipeline. Its predictions agree with those of this one up to rounding.

        Raises
        ------
        NotFittedError
            If the pipeline is not fitted.
        TypeError
            For steps and columns that have no such form: classes of this library within others, lists,
            amounts, formats of dates, and categories that are dates. The error names them.
        """
        check_is_fitted(self)
        return annex("to_sklearn")(self)

    def _known_leaks(self) -> tuple[str, ...]:
        """Known leaks: what steps learn from private rows without a budget."""
        return check_pipeline(self).in_words("leak", "uncounted")

    def _html_repr(self) -> str:
        report, leaks = report_of(self), self._known_leaks()
        first = first_line(leaks) if leaks or report is None else report.no_guarantee
        page: str = annex("estimator_page")(self, first)
        return page
