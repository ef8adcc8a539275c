"""Encoders by library: the only modules of ``skmixdp.features`` that import PyTorch.

They are imported when a transformer is first used. Each encoder module has a function
``load(**settings)`` that returns an :class:`~skmixdp.features._extraction.Encoder`, where the
settings are those parameters of the transformer that choose the network.
"""

from .torchvision_operators import ensure_torchvision

# First of all, before other modules import torchvision.
ensure_torchvision()
