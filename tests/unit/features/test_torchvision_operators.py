"""The repair acts on one error and on nothing else; each case in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

# Slow, since a process that has imported nothing takes seconds to import torch. Tests of encoders import the
# repaired torchvision.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

FORKS = """
import os, sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
import torch
import skmixdp.features

imports = []

class Fake(MetaPathFinder, Loader):
    def __init__(self, body):
        self.body = body
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == "torchvision" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        imports.append(module.__name__)
        exec(self.body)

def answer(body):
    if body == "installed":
        import skmixdp.features.backends, torchvision
        return torchvision.transforms.Resize(3)
    sys.meta_path.insert(0, Fake(body))
    from skmixdp.features.backends import torchvision_operators as repaired
    return len(imports), hasattr(torch.ops.torchvision, "nms"), len(repaired._declared)

for body in sys.argv[1:]:
    if not os.fork():
        try:
            print(answer(body), flush=True)
        except Exception as error:
            print(type(error).__name__, flush=True)
        os._exit(0)
    os.wait()
"""
BODIES = {
    "matching": "pass",
    "missing": "torch.library.register_fake('torchvision::nms')(lambda *a: None)",
    "runtime": "raise RuntimeError('something else')",
    "os": "raise OSError('operator torchvision::nms')",
    "installed": "installed",
}


def answers(*names):
    code = [sys.executable, "-c", textwrap.dedent(FORKS), *map(BODIES.get, names)]
    return subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()


def test_it_repairs_missing_operators_and_touches_nothing_else():
    """A matching build is left alone, operators that are missing are declared, other errors are passed on."""
    expected = ["(1, False, 0)", "(2, True, 1)", "RuntimeError", "OSError"]
    assert answers("matching", "missing", "runtime", "os") == expected


def test_the_installed_torchvision_can_be_imported():
    """By itself; the tests of encoders import it, too."""
    (answer,) = answers("installed")
    assert answer.startswith("Resize(size=3")
