"""Images, and the texts that describe them, through the networks of open_clip."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ._base import FrozenFeatures
from ._inputs import as_items


@dataclass(eq=False, repr=False)
class OpenClipFeatures(FrozenFeatures):
    """Turn images into rows of unit length with a frozen network of open_clip and its own preprocessing.

    The same network encodes texts: see :meth:`encode_texts`.

    Parameters
    ----------
    model_name : str, default="ViT-B-32"
        A model of open_clip, ``"hf-hub:..."`` or ``"local-dir:..."``. The last two include the
        weights, and ``pretrained`` is not used.
    pretrained : str, path-like or False, default="laion2b_s34b_b79k"
        Tag of the weights (see ``open_clip.list_pretrained()``) or path of a checkpoint. False
        means random weights from a fixed seed.
    device, batch_size, n_workers, amp, cache, dtype, on_error, verbose :
        As in :class:`FrozenFeatures`.

    Attributes
    ----------
    report_ : dict
        After ``fit``: model, origin and SHA-256 of the weights, and preprocessing. A fit is not
        needed for :meth:`transform`.

    Notes
    -----
    *Guarantee*: a row depends on its own image and on the weights alone.

    Examples
    --------
    >>> from skmixdp.features import OpenClipFeatures
    >>> features = OpenClipFeatures("ViT-B-32", pretrained="laion2b_s34b_b79k")
    >>> rows = features.transform(["cat.jpg", "dog.jpg"])  # doctest: +SKIP
    >>> names = features.encode_texts(["a photo of a cat"])  # doctest: +SKIP
    """

    _backend: ClassVar[str] = "open_clip_models"
    _choosing: ClassVar[tuple[str, ...]] = ("model_name", "pretrained")

    model_name: str = "ViT-B-32"
    _: KW_ONLY
    pretrained: Any = "laion2b_s34b_b79k"

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text, in the space of the images' rows.

        Parameters
        ----------
        texts : sequence of n_texts str

        Returns
        -------
        array of shape (n_texts, n_features_out), float32

        Raises
        ------
        ValueError, TypeError, ImportError
            As for :meth:`transform`.
        """
        self._check()
        return self._put_through(self._encoder(tower="text"), as_items(texts, "text")).features
