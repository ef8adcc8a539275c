"""Objects of annexes are imported on first use, and public names stay where they are."""

import subprocess
import sys

import pytest

import skmixdp
from skmixdp import algorithms, estimators
from skmixdp.algorithms import modelmix
from tests.private_names import PLACES, annex


def test_every_place_has_what_the_table_says():
    pytest.importorskip("torch")
    names = " ".join(PLACES.values()).split()
    assert all(callable(annex(name)) for name in names) and len({*names}) == len(names)


@pytest.mark.parametrize("package", [skmixdp, algorithms, estimators, modelmix])
def test_public_names_are_found_and_listed(package):
    assert all(getattr(package, name).__name__ for name in package.__all__ if name != "BY_NAME")
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'PAZ0'"):
        package.__getattr__("PAZ0")


def test_an_algorithm_of_a_paper_is_imported_by_its_name():
    code = (
        "import sys; from skmixdp.algorithms import BY_NAME; name = 'skmixdp._papers.first_order';"
        "assert name not in sys.modules; BY_NAME['gep'](); assert name in sys.modules;"
        "assert 'skmixdp._papers.zeroth_order' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
