"""Features by the networks of timm, open_clip and sentence-transformers."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._utils.validation import Allowed, Kind
from ._base import FrozenFeatures, is_path
from ._inputs import ItemKind, as_items


@dataclass(eq=False, repr=False)
class TimmFeatures(FrozenFeatures):
    """Turn images into rows with a frozen network of timm and its own preprocessing.

    Parameters
    ----------
    model_name : str, default="resnet50"
        A model of timm, such as ``"resnet50"``, ``"vit_base_patch16_224.augreg_in21k"`` with
        the tag of its weights, ``"hf-hub:..."`` or ``"local-dir:..."``.
    pretrained : bool or path-like, default=True
        True: the weights that timm downloads. A path: a checkpoint (safetensors or PyTorch),
        without the weights of its classifier. False: random weights from a fixed seed.
    layers : None, int or list of int or "head", default=None
        The layers of a row, concatenated in the network's order. Numbers are stages or blocks as timm's
        ``forward_intermediates`` counts them, negative ones from the end, each pooled. ``"head"`` or None is
        the pooled input of the classifier.
    pooling : None, str or list of str, default=None
        How to pool positions: ``"avg"`` or ``"max"``, or both. None is the network's own pooling for the
        classifier's input, and ``"avg"`` for ``layers``.
    image_size : None, int or (height, width), default=None
        Size of the network's input; None is the size that the weights were trained for.
    model_args : dict or None, default=None
        Further arguments of ``timm.create_model``, such as ``{"pad_type": "same"}``.
    preprocessing : dict or None, default=None
        Replaces entries of timm's data configuration: ``mean``, ``std``, ``interpolation``,
        ``crop_pct``, ``crop_mode``.
    device, batch_size, n_workers, amp, cache, dtype, on_error, verbose :
        As in :class:`FrozenFeatures`.

    Attributes
    ----------
    report_ : dict
        After ``fit``: model, origin and SHA-256 of the weights, and preprocessing. A fit is not
        needed for :meth:`transform`.

    Notes
    -----
    *Guarantee*: a row depends on its own image and on the weights alone. The network runs in
    evaluation mode. A network that normalises over the batch even then is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp.features import TimmFeatures
    >>> images = np.zeros((2, 28, 28, 3), dtype=np.uint8)
    >>> features = TimmFeatures("resnet18", pretrained=False, image_size=32, device="cpu")
    >>> features.transform(images).shape  # doctest: +SKIP
    (2, 512)
    """

    _backend: ClassVar[str] = "timm_models"
    _choosing: ClassVar[tuple[str, ...]] = (
        *("model_name", "pretrained", "layers", "pooling", "image_size", "model_args", "preprocessing"),
    )

    model_name: str = "resnet50"
    _: KW_ONLY
    pretrained: Any = True
    layers: Any = None
    pooling: Any = None
    image_size: Any = None
    model_args: Any = None
    preprocessing: Any = None


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
    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **FrozenFeatures._allowed,
        "model": (Kind("the name of a model or the path of a folder", is_path),),
    }

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
