"""How a fit maps its rows, as one parameter of the heads."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from .._utils.validation import FLAG, Allowed, Kind, check_params


@dataclass(eq=False, repr=False)
class RowMapping(BaseEstimator):  # type: ignore[misc]
    """How rows are mapped before training: the parameter ``rows`` of the heads.

    Rows are standardised (``scale`` of the head), centred, whitened and bounded in length, by public or noisy
    values. The map is a part of the fitted model. In a parameter grid, use names such as ``rows__whiten``.

    Parameters
    ----------
    center : bool, default=True
        Whether to subtract the mean of the public rows, that of noisy columns (``scale``), or the one that
        ``geometry`` learns.
    whiten : bool or "auto", default="auto"
        Whether to shrink the directions in which public rows of the same class differ. For a regression,
        these are the directions in which rows differ most, by noisy second moments of the private rows if
        these are many, or by more than 20 public rows. ``"auto"`` is True only for ``algorithm="auto"``.
    geometry : bool or "auto", default="auto"
        Whether to learn the centre and the leading directions from the private rows, for 3 to 10% of the
        squared budget (``mu**2``). ``"auto"`` does so for classes and ``algorithm="auto"`` with few public
        rows, where rows have unit length.
    norm : {"auto", "unit", "clip", None}, default="auto"
        How the lengths of rows are bounded. ``"unit"`` divides each row by its L2 norm, so that the model
        cannot use lengths. ``"clip"`` divides all rows by one length and shortens longer ones, and None
        leaves rows unchanged. ``"auto"`` is ``"clip"`` for a regression. For classes, it is ``"clip"`` for
        standardised columns, and ``"unit"`` for others.

    See Also
    --------
    MixedDPLogisticRegression, MixedDPRidge

    Examples
    --------
    >>> from skmixdp import MixedDPLogisticRegression, RowMapping
    >>> clf = MixedDPLogisticRegression(rows=RowMapping(whiten=False, norm="clip"))
    >>> clf.set_params(rows__norm="unit").rows
    RowMapping(norm='unit', whiten=False)
    """

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "center": (FLAG,),
        "whiten": (FLAG, "auto"),
        "geometry": (FLAG, "auto"),
        "norm": ("auto", "unit", "clip", None),
    }

    _: KW_ONLY
    center: bool = True
    whiten: Any = "auto"
    geometry: Any = "auto"
    norm: str | None = "auto"

    def _checked_parameters(self, auto: str) -> dict[str, Any]:
        """The checked parameters; ``auto`` is what ``norm="auto"`` stands for."""
        checked = check_params(self, self._allowed, named=True)
        return checked | {"norm": auto if self.norm == "auto" else self.norm}


#: What ``rows`` may be besides "auto".
ROW_MAPPING = Kind(
    "an object such as skmixdp.RowMapping(whiten=False)", lambda value: isinstance(value, RowMapping)
)
