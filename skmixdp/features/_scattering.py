"""Scattering features of images, which need no weights."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._utils.process import own_state
from .._utils.validation import COUNT, Allowed, Kind, sources_of, whole_from
from ._base import FrozenFeatures
from ._encoders import Encoder


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
