"""Objects of annexes by name, in one table. Each is imported on first use: the core imports no annex."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

#: Modules of annexes, below ``skmixdp``, and what the core takes from them.
PLACES = {
    "_dask": "DaskTable",
    "_export.onnx_model": "to_onnx",
    "_export.sklearn_model": "to_sklearn",
    "_files.streamed": "table_of_map",
    "_papers.first_order": "Coupling DOPE GEP PDADPMD",
    "_papers.modelmix.algorithm": "ModelMix ModelMixEvent modelmix_epsilon",
    "_papers.zeroth_order": "DPZero PAZO",
    "_resuming": "resumable",
    "_torch.classifiers": "FirstOrderDPModuleClassifier ZerothOrderDPModuleClassifier",
    "_torch.tensors": "TorchTable",
    "additive": "AdditiveDPClassifier AdditiveDPRegressor",
    "additive._counts": "AdditiveDPPoissonRegressor",
    "inference._count_regressor": "MixedDPPoissonRegressor",
    "inspection": "EvaluationDisplay",
    "inspection._guarantee_box": "caption estimator_page",
}


def annex(name: str) -> Any:
    """The object with this name, from a module that is imported now."""
    place = next(module for module, names in PLACES.items() if name in names.split())
    return getattr(import_module(f"skmixdp.{place}"), name)


def late_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, which import its public names of annexes on first use."""
    names = vars(sys.modules[package])

    def find(name: str) -> Any:
        if name not in names["__all__"]:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return annex(name)

    return find, lambda: sorted({*names, *names["__all__"]})
