"""Features by the networks of timm, open_clip and sentence-transformers, and by scattering."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._utils.process import own_state
from .._utils.validation import COUNT, Allowed, Kind, sources_of, whole_from
from ._base import FrozenFeatures, is_path
from ._extraction import Encoder
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


@dataclass(eq=False, repr=False)
class ScatteringFeatures(FrozenFeatures):
    """Turn images into rows with two layers of wavelets and moduli, without training.

    Parameters
    ----------
    J : int, default=2
        Number of octaves. Coefficients are averages over ``2**J`` pixels, one every ``2**J`` pixels.
    L : int, default=8
        Number of orientations.
    normalization : {"group", "batch"} or None, default="group"
        ``"group"`` gives each of ``n_groups`` groups of channels mean 0 and variance 1 within each image.
        ``"batch"`` gives each channel mean 0 and variance 1 over the images and positions of PUBLIC rows,
        ``X_pub`` of :meth:`fit`. None does not normalise.
    n_groups : int, default=27
        Must divide the number of channels, ``1 + J L + J (J - 1) L^2 / 2`` for each colour, by
        default 81.
    image_size : int or (height, width), default=32
        Images of another size are resized; at least ``2**J``.
    n_channels : {1, 3}, default=1
        1 converts colours to grey. 3 scatters red, green and blue separately.
    device, batch_size, n_workers, amp, cache, dtype, on_error, verbose :
        As in :class:`FrozenFeatures`. ``amp`` has no effect: Fourier transforms are computed in
        float32. The cache holds rows before ``"batch"`` normalisation.

    Attributes
    ----------
    report_ : dict
        After ``fit``: model, SHA-256 of the filters, and preprocessing. Only
        ``normalization="batch"`` needs a fit.
    channel_mean_, channel_scale_ : arrays of shape (n_channels_out,)
        With ``normalization="batch"``: statistics of the public rows.

    Notes
    -----
    *Guarantee*: a row depends on its own image, and with ``normalization="batch"`` on public
    images; the images in ``X`` of :meth:`fit` are not read.

    References
    ----------
    Oyallon and Mallat 2015, "Deep Roto-Translation Scattering for Object Classification".
    Tramèr and Boneh 2021, "Differentially Private Learning Needs Better Features (or Much More
    Data)", section 3: scattering, and both normalisations.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp.features import ScatteringFeatures
    >>> images = np.zeros((2, 28, 28), dtype=np.uint8)
    >>> ScatteringFeatures(image_size=28, device="cpu").transform(images).shape  # doctest: +SKIP
    (2, 3969)
    """

    # Routed to fit by default, without set_fit_request, as for the estimators.
    __metadata_request__fit: ClassVar = {"X_pub": True, "y_pub": True}

    _backend: ClassVar[str] = "scattering"
    _choosing: ClassVar[tuple[str, ...]] = ("J", "L", "image_size", "n_channels")

    _allowed: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **FrozenFeatures._allowed,
        "J": (COUNT,),
        "L": (COUNT,),
        "n_groups": (COUNT,),
        "n_channels": (Kind("1 (grey) or 3 (colour)", lambda value: value in (1, 3)),),
        "normalization": ("group", "batch", None),
    }

    J: int = 2
    L: int = 8
    _: KW_ONLY
    normalization: str | None = "group"
    n_groups: int = 27
    image_size: Any = 32
    n_channels: int = 1

    def fit(
        self, X: object = None, y: object = None, X_pub: object = None, y_pub: object = None
    ) -> "ScatteringFeatures":
        """Check the parameters; with ``normalization="batch"``, compute statistics of public images.

        Parameters
        ----------
        X : ignored
        y : ignored
        X_pub : images as for :meth:`transform`, tuple of such, or None
            PUBLIC images, for ``normalization="batch"``.
        y_pub : ignored

        Returns
        -------
        self : ScatteringFeatures

        Raises
        ------
        ValueError, TypeError
            For parameters or items that cannot be used, and for ``normalization="batch"`` without
            public images.
        ImportError
            If a package is missing.
        """
        super().fit(X, y)
        if self.normalization == "batch":
            if X_pub is None or (isinstance(X_pub, tuple) and not X_pub):
                raise ValueError(
                    "normalization='batch' takes its statistics from public images, but X_pub is None; pass "
                    "X_pub to fit, or normalization='group'."
                )
            rows = np.concatenate(
                [super(ScatteringFeatures, self).extract(part).features for part in sources_of(X_pub)]
            )
            values = self._by_channel(rows).astype(np.float64)
            self.channel_mean_ = values.mean(axis=(0, 2))
            scale = values.std(axis=(0, 2))
            self.channel_scale_ = np.where(scale > 0, scale, 1.0)
        return self

    @own_state()
    def extract(self, X: object) -> Any:
        result = super().extract(X)
        if self.normalization != "batch":
            return result
        check_is_fitted(
            self,
            "channel_mean_",
            msg="normalization='batch' of %(name)s needs a fit with public images X_pub first; pass "
            "normalization='group' otherwise.",
        )
        values = self._by_channel(result.features)
        values -= self.channel_mean_[:, None].astype(np.float32)
        values /= self.channel_scale_[:, None].astype(np.float32)
        return result

    def _by_channel(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows (n, d) as (n, n_channels_out, positions), without a copy."""
        return rows.reshape(len(rows), self._n_paths() * self.n_channels, -1)

    def _n_paths(self) -> int:
        return 1 + self.J * self.L + self.J * (self.J - 1) * self.L**2 // 2

    def _encoder(self, **changed: object) -> Encoder:
        groups = self.n_groups if self.normalization == "group" else None
        return super()._encoder(n_groups=groups, **changed)

    def _check(self) -> None:
        super()._check()
        channels = self._n_paths() * self.n_channels
        if self.normalization == "group" and channels % self.n_groups:
            raise ValueError(
                f"n_groups={self.n_groups} does not divide the {channels} channels of J={self.J}, L={self.L} "
                f"and n_channels={self.n_channels}; choose a divisor, such as {channels}."
            )
        size = self.image_size
        sides = size if isinstance(size, (tuple, list)) else (size, size)
        if len(sides) != 2 or not all(whole_from(2**self.J).admits(side) for side in sides):
            raise ValueError(
                f"image_size={size!r} must be a whole number, or a height and a width, of at least 2**J = "
                f"{2**self.J}."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.normalization == "batch"
        return tags
