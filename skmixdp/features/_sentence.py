"""Features of texts, by the networks of sentence-transformers."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._utils.validation import Allowed, Kind, check_params
from ._base import FrozenFeatures
from ._inputs import ItemKind

_CHECKS: dict[str, tuple[Allowed, ...]] = {
    "model": (
        Kind(
            "the name of a model or the path of a folder", lambda value: isinstance(value, (str, os.PathLike))
        ),
    )
}


@dataclass(eq=False, repr=False)
class SentenceFeatures(FrozenFeatures):
    """Turn texts into rows of unit length with a frozen network of sentence-transformers.

    Parameters
    ----------
    model : str or path-like, default="all-MiniLM-L6-v2"
        A model of sentence-transformers, or the folder of a saved one. Its own tokenizer, pooling
        and limit on the number of tokens are used.
    device, batch_size, n_workers, amp, cache, dtype, on_error, verbose :
        As in :class:`FrozenFeatures`.

    Attributes
    ----------
    report_ : dict
        After ``fit``: model, origin and SHA-256 of the weights, and preprocessing. A fit is not
        needed for :meth:`transform`.

    Notes
    -----
    *Guarantee*: a row depends on its own text and on the weights alone. Texts of a batch are
    padded to a common length and masked. This changes rows by rounding only.

    Needs ``skmixdp[text]``.

    Examples
    --------
    >>> from skmixdp.features import SentenceFeatures
    >>> features = SentenceFeatures("all-MiniLM-L6-v2")
    >>> rows = features.transform(["My card has not arrived.", "Top up by cash?"])  # doctest: +SKIP
    """

    _backend: ClassVar[str] = "sentences"
    _extra: ClassVar[str] = "text"
    _kind: ClassVar[ItemKind] = "text"
    _choosing: ClassVar[tuple[str, ...]] = ("model",)

    model: Any = "all-MiniLM-L6-v2"

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text; :class:`ZeroShotHead` calls this.

        Parameters
        ----------
        texts : sequence of n_texts str

        Returns
        -------
        array of shape (n_texts, n_features_out), float32
        """
        return self.extract(texts).features

    def _check(self) -> None:
        super()._check()
        check_params(self, _CHECKS)
