"""The logistic regression."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from .._fit.stages.labels import refuse_without_counts
from .._fit.stages.training import NamedStart
from .._linear.losses import Loss, MultilabelLoss, classification_loss
from .._rows.table import (
    check_indicator,
    check_labels,
    encode_labels,
    is_indicator,
    labels_of,
    names_of_labels,
)
from .._utils.validation import FLAG, NON_NEGATIVE, Allowed, shown
from ..privacy.accounting.budgets import Budget
from ._base import EstimatorProcedure, FitData, fit_one
from ._linear import LinearHead, TrainedHead
from ._outputs import Classifier
from ._private_score import PrivateConfusionMixin
from ._problem import WEIGHTS_BY_CLASS, check_class_weight, check_width, encode_classes

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class LogisticHead(Classifier, PrivateConfusionMixin, LinearHead):
    """Base class of the heads for classes: linear ones, and those on a basis of each column."""

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **LinearHead._allowed,
        "class_weight": (None, "balanced", WEIGHTS_BY_CLASS),
        "logit_adjustment": (NON_NEGATIVE, "auto"),
        "self_training": (FLAG,),
    }
    _saved: ClassVar[tuple[str, ...]] = (*LinearHead._saved, "classes_", "multilabel_", "class_shares_")

    _: KW_ONLY
    classes: Any = None
    class_weight: Any = None
    logit_adjustment: Any = "auto"

    self_training = cast(Any, False)  # a parameter of the linear head alone

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(
        self,
        X: object,
        y: object = None,
        X_pub: object = None,
        y_pub: object = None,
        *,
        sample_weight: object = None,
        groups: object = None,
        X_unlabeled: object = None,
        **unsupported: object,
    ) -> Self:
        """Fit the model to private rows and, if there are any, public rows.

        Parameters
        ----------
        X : array-like, tensor, sparse matrix, memory map, Dask array or RowFiles, (n_samples, n_features)
            PRIVATE rows. Rows that are not in memory are read in parts, see
            :func:`~skmixdp.datasets.open_rows`.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), or None
            Labels of the private rows. A dense table of zeros and ones has a column for each of several
            labels. If None, the labels in the files of ``X`` are used.
        X_pub : array-like of shape (n_pub, n_features), tuple of such, or None
            Public rows: one array, or a tuple of several sources.
        y_pub : array-like of shape (n_pub,) or (n_pub, n_labels), tuple of such, or None
            Labels of the public rows, with the columns of ``y``.
        sample_weight : array-like of shape (n_samples,) or None
            Non-negative weights of the private rows. They are PRIVATE, like labels. Only their ratios count:
            see ``max_sample_weight``. All public rows have the same weight. Learning the map of the rows
            ignores weights.
        groups : array-like of shape (n_samples,) or None
            Ids of the persons whose rows these are: integers, strings, or a pandas column, whose name the
            report and the ledger use. The guarantee is then for all rows of one person, and the number of
            rows is not public. The mapped rows must fit into memory.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), tuple of such, or None
            Public rows without labels. They tell centre, scale and directions of the rows together with
            ``X_pub``, so that fewer releases are needed.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For bad input, before any noise is drawn.
        BudgetExceededError
            If the ledger does not allow the fit; nothing is released or charged.
        """
        fit_one(
            self, FitData(X, y, X_pub, y_pub, sample_weight, groups, X_unlabeled=X_unlabeled), unsupported
        )
        return self

    def _fit_procedure(self, budget: Budget, data: FitData) -> EstimatorProcedure:
        self.multilabel_ = is_indicator(labels_of(data.X, data.y))
        check_target = check_indicator if self.multilabel_ else check_labels
        rows = self._check_rows(data, check_target, "labels")
        loss: Loss
        if self.multilabel_:
            self._refuse_for_several_labels()
            n_labels = rows.y.shape[1]
            self.classes_, origin = names_of_labels(self.classes, data.y, data.y_pub, n_labels)
            kind, loss = "number and the names of the labels", MultilabelLoss(n_labels)
        else:
            rows.y, rows.y_pub, origin = encode_classes(self, rows.y, rows.y_pub)
            kind, loss = "classes", classification_loss(len(self.classes_))
        fit = self._fit_of(rows, loss, budget, data, f"the {kind} ({origin})")
        settings = replace(
            fit.settings,
            logit_adjustment=self.logit_adjustment,
            self_training=bool(self.self_training),
            classes=self.classes_,
        )
        fit = replace(fit, settings=settings)
        if isinstance(self.class_weight, str):
            refuse_without_counts("class_weight", self.class_weight, fit)
            fit = replace(fit, weights=replace(fit.weights, n_counted=len(self.classes_)))
        elif self.class_weight is not None:
            of_classes = check_class_weight(self.class_weight, self.classes_)
            fit = replace(fit, weights=replace(fit.weights, of_classes=of_classes))
        return self._prepared(fit, data)

    def _refuse_for_several_labels(self) -> None:
        """Refuse parameters that need one class per row."""
        named = isinstance(self.init, NamedStart)
        for name, wrong, value, remedy in (
            ("class_weight", self.class_weight is not None, self.class_weight, "None"),
            ("logit_adjustment", self.logit_adjustment not in (0, "auto"), self.logit_adjustment, "'auto'"),
            ("self_training", self.self_training, self.self_training, "False"),
            ("init", named, type(self.init).__name__, "'public', 'zeros' or an array"),
        ):
            if wrong:
                raise ValueError(
                    f"{name}={shown(value)} needs one class per row, and y has several labels per row; pass "
                    f"{remedy}."
                )

    def _training_rows(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Mapped rows, and class indices or labels, as the fit used them; for audits."""
        return self._row_map(X, np.float64), self._encoded(y, len(X))

    def _encoded(self, y: object, n_rows: int) -> Array:
        """Class indices (n_rows,) or labels (n_rows, k), by the classes of the fit."""
        if not self.multilabel_:
            return encode_labels(check_labels(y, "y", n_rows, "X"), self.classes_, "y", private=True)
        labels = check_indicator(y, "y", n_rows, "X", self.classes_)
        check_width(labels, len(self.classes_), "labels", "this classifier was fitted to")
        return labels

    def _start_of_training(self) -> Array | NamedStart:
        named: NamedStart = self.init
        return named if isinstance(named, NamedStart) else super()._start_of_training()


@dataclass(eq=False, repr=False)
class MixedDPLogisticRegression(LogisticHead, TrainedHead):
    """Differentially private logistic regression on private and public rows.

    ``X, y`` are the private rows. A few labelled public rows ``X_pub, y_pub`` make the classifier much more
    accurate. The objective is the mean cross-entropy of all rows: softmax for three or more classes, one
    output for two classes, and one for each label if rows have several (:doc:`/several_labels`). Rows are
    first centred and whitened by public or noisy values, and their length is bounded. Columns in different
    units are standardised. The probabilities of the default are calibrated by a private temperature
    (:doc:`/calibration`). ``coef_`` applies to these mapped rows, not to ``X``: give explainers such as SHAP
    the function ``predict_proba``, since those of linear models multiply ``coef_`` by ``X``. Effects per
    unit of a column, with intervals, come from :func:`~skmixdp.inference.private_inference`.

    The parameters fall into six groups. Most fits need those of the first two alone.

    - :ref:`Budget <parameters-budget>`: ``epsilon``, ``delta``, ``n_steps``, ``noise_multiplier``,
      ``neighboring`` and ``noise`` say what the fit guarantees.
    - :ref:`Classes and weights <parameters-classes>`: ``classes``, ``class_weight`` and
      ``logit_adjustment`` declare the classes and help rare ones.
    - :ref:`Preprocessing <parameters-preprocessing>`: ``fit_intercept``, ``rows`` and ``scale``
      say how rows are mapped before training.
    - :ref:`Optimisation <parameters-optimisation>`: ``algorithm``, ``learning_rate``, ``l2``, ``public_l2``,
      ``batch_size``, ``max_sample_weight`` and ``init`` say how the head is trained.
    - :ref:`Computing <parameters-computing>`: ``device``, ``dtype``, ``random_state`` and ``verbose`` say
      where and how precisely.
    - :ref:`Bookkeeping <parameters-bookkeeping>`: ``ledger`` and ``record_per_instance`` keep account of
      the cost.

    Parameters
    ----------
    algorithm : str or object, default="auto"
        One of "auto", "adamix", "noisy-gd", "coupling", "pda-dpmd", "dope-sgd", "gep" and "modelmix",
        or an object from :mod:`skmixdp.algorithms`. A name selects the algorithm with its default settings.
    epsilon : float or None, default=1.0
        Privacy budget of one fit. If None, ``noise_multiplier`` and ``n_steps`` determine the epsilon.
    delta : float, default=1e-5
        The delta of the guarantee. Choose it well below 1/n.
    n_steps : int or None, default=None
        Number of steps. If None, the algorithm chooses it.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise divided by the sensitivity. With ``epsilon``, it determines the
        number of steps.
    neighboring : {"add_or_remove_one", "zero_out", "replace_one"}, default="add_or_remove_one"
        Which data sets count as neighbours. The number of private rows is always treated as public.
    noise : {"float", "discrete"}, default="float"
        ``"discrete"`` protects against attacks on low-order bits, by exact sums and discrete Gaussian noise.
        It needs ``skmixdp[discrete]`` and is slower.
    classes : array-like or None, default=None
        All class labels, or the names of the columns of ``y`` where rows have several labels. If None, they
        are those of ``y_pub``, or the columns of a data frame or their numbers. Without public rows, classes
        are read from ``y``, which the guarantee does not cover, and a PrivacyLeakWarning says so.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, whose ratios count (:ref:`what a weight means <what-a-weight-means>`); 1 for
        classes that a dict leaves out. ``"balanced"`` weights by the inverse of the class shares: for private
        rows from noisy counts, for public rows from their own.
    logit_adjustment : float or "auto", default="auto"
        Corrects the logits after training for classes with few rows: a number ``tau`` subtracts ``tau`` times
        the logarithms of the class shares, which noisy counts estimate. ``"auto"`` takes the largest of a few
        ``tau`` that costs at most a point of accuracy. 0 turns the correction off.
    self_training : bool, default=False
        Whether rows of ``X_unlabeled``, at least ten for each of three or more classes, labelled by the
        released head, correct it. This costs no budget. It gains where the rows form clusters that are the
        classes, as for most texts and images, and may lose elsewhere.
    fit_intercept : bool, default=True
        Whether to add a constant column after centring and scaling.
    rows : "auto" or RowMapping, default="auto"
        How rows are centred, whitened and bounded in length. ``"auto"`` is ``RowMapping()``, see
        :class:`~skmixdp.RowMapping`.
    scale : bool, "auto" or dict of column: Typical(value, distance), default="auto"
        Whether to standardise columns whose units differ, by 10 public rows or more, or else by noisy
        histograms for 1 to 37% of the squared budget; ``"auto"`` is True unless the ``norm`` of ``rows`` is
        None, and explicit algorithms use public rows alone. A dict declares columns by name or number (see
        :class:`~skmixdp.Typical`; behind a ``TableEncoder``, by their names in the frame), which costs
        nothing. Histograms take their place only where noise in them is small.
    learning_rate : float or "auto", default="auto"
        Step size for the mean objective. ``"auto"`` derives it from public quantities.
    l2 : float or "auto", default="auto"
        Strength of the penalty ``l2 / 2 |W - center|^2`` in the mean objective. ``"auto"`` is 0, except
        for decaying steps, which need a penalty, and for the default algorithm at epsilon above about 15,
        where it grows towards 0.01 divided by the number of rows.
    public_l2 : float or "auto", default="auto"
        Strength of the L2 penalty in the mean public objective, whose minimiser is the start.
        ``"auto"`` is 0.2 / n_pub for rows of unit length.
    batch_size : int or None, default=None
        Expected number of private rows in a step, each drawn independently (Poisson sampling). If None,
        every step uses all rows, which is accounted for exactly and is better for most heads.
    max_sample_weight : float or "auto", default="auto"
        The ``sample_weight`` that counts as 1; larger ones count as 1, too. Declare it from prior knowledge.
        ``"auto"`` learns it from a noisy histogram of the weights, for 0.2 to 2% of the squared budget.
    init : {"public", "zeros"}, array of shape (k, n_features) or (k, n_features + 1), or object
        The head before the first step. ``"public"`` is the public fit, or zeros without public rows. An
        array holds coefficients, with or without intercepts; an object is a
        :class:`~skmixdp.features.ZeroShotHead`, or a released head of this class to continue from.
    device : "auto" or torch device, default="auto"
        The device that holds and multiplies dense rows. ``"auto"`` leaves the rows where they are.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the products with private rows; discrete noise always uses float64.
    random_state : None, int or RandomState, default=None
        If None, noise comes from a cryptographic generator that the operating system seeds. A given seed
        makes the run reproducible and NOT private: a NotPrivateWarning and the report say so.
    verbose : int, default=0
        1 shows a progress bar at once, in any output. 0 shows it on terminals after 2 seconds.
    ledger : LedgerDataset or None, default=None
        The ledger entry of the data set in ``X``, such as ``PrivacyLedger(path)["patients"]``. The fit is
        charged to it after all checks and before the first release.
    record_per_instance : bool or "picklable", default=False
        Whether to record each private row's own privacy loss, for
        :func:`~skmixdp.audit.per_instance_epsilon`. The record is PRIVATE; only ``"picklable"`` allows
        pickling it.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted class labels. With several labels per row, the names of the labels in the order of the columns.
    multilabel_ : bool
        Whether the rows of the fit had several labels.
    coef_ : array of shape (k, n_features)
        Coefficients. They apply to the centred, whitened and scaled row.
    intercept_ : array of shape (k,)
        Intercepts.
    class_shares_ : array of shape (n_classes,)
        Estimated shares of the classes among the private rows, from noisy counts; with weights, shares of the
        total weight. Present only if the start or ``logit_adjustment`` needed them.
    privacy_ : PrivacyReport
        The guarantee of the fit and its assumptions.
    n_iter_ : int
        Number of steps taken.
    learning_rate_ : float
        Step size of the first step.
    per_instance_ : PerInstanceRecord
        Privacy loss of each private row. PRIVATE. Present only with ``record_per_instance``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X was a data frame with string columns.

    Notes
    -----
    *Guarantee*: the fitted head is (epsilon, delta)-differentially private in the rows of ``X, y``.
    Full-batch Gaussian releases are accounted for exactly. Sampled batches are accounted for by the
    privacy loss distributions of dp-accounting. The guarantee does not protect public rows, the number
    of private rows, the fact that validation passed, or anything else that ``privacy_`` lists as public.
    The ``sample_weight`` of a row may depend on that row alone. Weights computed from all private rows, such
    as inverse class frequencies or the weights of AdaBoost, leak; use ``class_weight`` for the former.
    Predictions and scores computed on private rows are further releases, which this does not cover.

    References
    ----------
    Golatkar et al. 2022, "Mixed Differential Privacy in Computer Vision" (AdaMix); Menon et al. 2021,
    "Long-tail learning via logit adjustment", section 4.1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skmixdp import MixedDPLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = MixedDPLogisticRegression(epsilon=1.0)
    >>> clf = clf.fit(X[100:1400], y[100:1400], X_pub=X[:100], y_pub=y[:100])
    >>> clf.privacy_.n_private, clf.privacy_.n_public
    (1300, 100)
    >>> bool(clf.score(X[1400:], y[1400:]) > 0.8)
    True
    """

    _: KW_ONLY
    self_training: bool = False
