"""Old module names of version 0.1, so that models saved by it still load and predict."""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Old module names in pickles of 0.1, and the modules that now hold their classes.
_MOVED = {
    "skmixdp._classification": "skmixdp.estimators",
    "skmixdp._regression": "skmixdp.estimators",
    "skmixdp._zeroth_order": "skmixdp.estimators",
    "skmixdp.algorithms.modelmix": "skmixdp.modelmix",
    "skmixdp.linear": "skmixdp._rows",
    "skmixdp.linear.preparation": "skmixdp._rows",
    "skmixdp.linear.whitening": "skmixdp._rows",
    "skmixdp.privacy.search_report": "skmixdp.privacy",
}


class _Finder(MetaPathFinder, Loader):
    """Imports an old name as a module with the contents of its successor."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname in _MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """None asks for an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        new = importlib.import_module(_MOVED[module.__name__])
        vars(module).update({name: getattr(new, name) for name in new.__all__})


sys.meta_path.append(_Finder())
