"""Every module of the package can be imported with all warnings as errors."""

import pkgutil
import subprocess
import sys

import pytest

import skmixdp


@pytest.mark.slow
def test_no_import_warns():
    names = [module.name for module in pkgutil.walk_packages(skmixdp.__path__, "skmixdp.")]
    pytest.importorskip("torchvision")  # some modules need the optional packages
    names.remove("skmixdp.__main__")
    assert len(names) > 100
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
