"""Registries of annexes: entries are imported on first use, and public names stay where they are."""

import subprocess
import sys

import pytest

import skmixdp
from skmixdp import algorithms, estimators
from tests.private_names import DISPLAYS, EXPORTERS, TABLE_TYPES, Registry


def test_an_entry_is_an_object_or_the_place_of_one():
    registry = Registry({"one": int, "two": "_papers.pazo:PAZO"})
    assert registry["two"] is algorithms.PAZO and dict(registry) == {"one": int, "two": algorithms.PAZO}
    assert "three" not in registry and registry.get("three") is None
    with pytest.raises(KeyError):
        registry["three"]


def test_entries_replace_those_of_the_same_name():
    joined = algorithms.BY_NAME | {"auto": int}
    assert list(joined) == list(algorithms.BY_NAME) and joined["auto"] is int
    assert algorithms.BY_NAME["auto"] is algorithms.Auto


@pytest.mark.parametrize(
    "registry", [algorithms.BY_NAME, EXPORTERS, DISPLAYS], ids=["names", "exports", "plots"]
)
def test_every_entry_exists(registry):
    assert all(callable(registry[name]) for name in registry)


def test_every_table_type_exists():
    pytest.importorskip("torch")
    assert all(callable(TABLE_TYPES[name]) for name in TABLE_TYPES)


@pytest.mark.parametrize("package", [skmixdp, algorithms, estimators])
def test_public_names_are_found_and_listed(package):
    assert all(getattr(package, name).__name__ for name in package.__all__ if name != "BY_NAME")
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'PAZ0'"):
        package.__getattr__("PAZ0")


def test_an_algorithm_of_a_paper_is_imported_by_its_name():
    code = (
        "import sys; from skmixdp.algorithms import BY_NAME; name = 'skmixdp._papers.gep';"
        "assert name not in sys.modules; BY_NAME['gep']; assert name in sys.modules;"
        "assert 'skmixdp._papers.pazo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
