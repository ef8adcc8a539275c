"""Make ``import torchvision`` work with another PyTorch than it was compiled for.

torchvision's compiled operators cannot be loaded if its build does not match PyTorch's. An example is
a build for CUDA with a PyTorch for CPUs. The import then fails with "operator torchvision::nms does
not exist". Declaring these operators, which are not used here, lets the import succeed. With matching
builds nothing happens.
"""

import importlib
import sys
from importlib.util import find_spec

import torch

_SYMPTOM = "operator torchvision::nms does not exist"
_SIGNATURES = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
#: Keeps the declared operators in memory.
_declared: list[torch.library.Library] = []


def ensure_torchvision() -> None:
    """Import torchvision if it is installed, and declare its operators if the import needs it."""
    if find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if _SYMPTOM not in str(error):
            raise
        library = torch.library.Library("torchvision", "DEF")
        for signature in _SIGNATURES:
            library.define(signature)
        _declared.append(library)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # partly imported
        importlib.import_module("torchvision")
