"""The repair acts on one error and on nothing else; each case in a process of its own."""

import subprocess
import sys

import pytest

FAKE = """
import sys, types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
import torch

imports = []

class Fake(MetaPathFinder, Loader):
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == "torchvision" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        imports.append(module.__name__)
        {body}

sys.meta_path.insert(0, Fake())
from skmixdp.features.backends import torchvision_operators as repaired
print(len(imports), hasattr(torch.ops.torchvision, "nms"), len(repaired._declared))
"""


def run(body):
    code = FAKE.format(body=body)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_matching_build_is_left_alone():
    assert run("pass").stdout.split() == ["1", "False", "0"]


def test_missing_operators_are_declared_and_the_import_goes_through():
    body = "torch.library.register_fake('torchvision::nms')(lambda *a: None)"
    done = run(body)
    assert done.stdout.split() == ["2", "True", "1"], done.stderr


@pytest.mark.parametrize("error", ["RuntimeError('something else')", "OSError('operator torchvision::nms')"])
def test_other_errors_are_not_touched(error):
    done = run(f"raise {error}")
    assert done.returncode == 1 and error.partition("(")[0] in done.stderr


def test_the_installed_torchvision_can_be_imported():
    code = "import skmixdp.features.backends, torchvision; print(torchvision.transforms.Resize(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Resize(size=3")
