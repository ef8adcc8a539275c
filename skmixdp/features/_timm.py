"""Features of images, by the networks of timm."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from ._base import FrozenFeatures


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
