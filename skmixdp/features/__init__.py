"""Rows from images and texts: frozen networks as scikit-learn transformers.

A transformer holds parameters and loads an *encoder* when it is first used. An encoder is a
frozen network and the preparation of its input; it lives in ``backends``, the only place that
imports PyTorch, and the contract between the two stands in ``_extraction``. Everything else,
from reading files to the cache on disk, is the same for all of them. ``X`` is a sequence of
``n`` items, images or texts, and what comes out is float32 of shape ``(n, n_features_out)``.

Nothing here is private: each row depends on its own item and on the weights, never on other
rows, so that a guarantee on rows is one on items. Rows kept in a cache are private data.
"""

from ._base import FrozenFeatures
from ._extraction import Extraction
from ._networks import OpenClipFeatures, ScatteringFeatures, SentenceFeatures, TimmFeatures
from ._zero_shot import ZeroShotHead

__all__ = [
    "Extraction",
    "FrozenFeatures",
    "OpenClipFeatures",
    "ScatteringFeatures",
    "SentenceFeatures",
    "TimmFeatures",
    "ZeroShotHead",
]
