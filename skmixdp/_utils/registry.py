"""Objects of annexes by name. Each is imported on first use, so that the core imports no annex.

There are four registries: ``BY_NAME`` in :mod:`skmixdp.algorithms`, ``TABLE_TYPES`` in ``_rows/table.py``,
``EXPORTERS`` in ``estimators/_saving``, and :data:`DISPLAYS` here.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping from names to objects.

    Entries of annexes are places such as ``"_papers.pazo:PAZO"``, below the package. Looking one up
    imports it.
    """

    def __init__(self, entries: Mapping[str, T | str]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if not isinstance(entry, str):
            return entry
        module, _, attribute = entry.partition(":")
        found: T = getattr(import_module(f"skmixdp.{module}"), attribute)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __or__(self, others: Mapping[str, T | str]) -> "Registry[T]":
        return Registry({**self._entries, **others})


def late_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, which import public names of annexes on first use.

    ``modules`` has the module of each name, below ``skmixdp``.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"skmixdp.{modules[name]}"), name)

    return find, lambda: sorted({*vars(sys.modules[package]), *modules})


#: Functions that draw a result or write a page on it, by the kind of the result.
DISPLAYS: Registry[Any] = Registry(
    {
        "caption": "inspection._guarantee_box:caption",
        "estimator": "inspection._guarantee_box:estimator_page",
        "evaluation": "inspection:EvaluationDisplay",
    }
)
