"""Build the wheel and the source distribution, install each in a clean environment, and use it there.

    python -m tests.packaging
    python -m tests.packaging --python python3.13 --extras

The environment is a new virtual environment in a temporary folder, and everything in it runs from outside the
checkout. With ``--extras``, pip also resolves all extras together, without installing them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: What a user does first, in a program of their own.
_USE = """
import importlib.metadata, pathlib, sys
import numpy as np
from sklearn.datasets import load_digits
import skmixdp

assert pathlib.Path(skmixdp.__file__).is_relative_to(sys.prefix), skmixdp.__file__
assert importlib.metadata.version("skmixdp") == skmixdp.__version__
X, y = load_digits(return_X_y=True)
clf = skmixdp.MixedDPLogisticRegression(epsilon=1.0).fit(X[100:], y[100:], X_pub=X[:100], y_pub=y[:100])
assert clf.score(X, y) > 0.8
clf.save("model.safetensors")
assert np.array_equal(skmixdp.load("model.safetensors").predict_proba(X), clf.predict_proba(X))
print(clf.privacy_)
"""

#: A typed program; mypy must accept the first part, and find the error in the second.
_TYPED = """
from typing import assert_type

from skmixdp import MixedDPLogisticRegression, fit_many, load
from skmixdp.privacy import PrivacyLedger, LedgerDataset, epsilon_of

assert_type(epsilon_of(20.0, 240, delta=1e-5), float)
assert_type(PrivacyLedger(":memory:")["patients"], LedgerDataset)
clf: MixedDPLogisticRegression = MixedDPLogisticRegression(epsilon=1.0)
clf.save("model.safetensors")
"""
_WRONG = 'epsilon_of("twenty", 240, delta=1e-5)\n'


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command in a folder, without the variables that would let it find the checkout."""
    print("$", *(str(part).strip().partition("\n")[0] for part in command), flush=True)
    start = time.perf_counter()
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run([str(part) for part in command], cwd=cwd, check=True, env=kept)
    print(f"  {time.perf_counter() - start:.1f} s", flush=True)


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution; the wheel is built from the latter, so nothing is missing."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    (source,) = folder.glob("*.tar.gz")
    return wheel, source


def environment(folder: Path, interpreter: str) -> Path:
    """The interpreter of a new virtual environment."""
    run(interpreter, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin" / "python"


def use(python: Path, folder: Path) -> None:
    """Use the installed package as a user would."""
    run(python, "-m", "pip", "check", cwd=folder)
    run(python, "-W", "error", "-c", _USE, cwd=folder)


def check_types(python: Path, folder: Path) -> None:
    """Check that type checkers see the types of the installed package."""
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", "mypy"]
    for name, text in (("right.py", _TYPED), ("wrong.py", _TYPED + _WRONG)):
        (folder / name).write_text(text, encoding="utf-8")
    run(*mypy, "right.py", cwd=folder)
    found = subprocess.run(
        [*map(str, mypy), "wrong.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    if found.returncode == 0 or "epsilon_of" not in found.stdout:
        sys.exit(f"mypy does not see the types of the package: {found.stdout}{found.stderr}")


def resolve_extras(python: Path, constraints: Path, wheel: Path, folder: Path) -> None:
    """Let pip find versions for all extras together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ",".join(project["optional-dependencies"])
    pip = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--constraint", constraints]
    run(*pip, f"{wheel}[{extras}]", cwd=folder)


def main() -> None:
    """Build, install, use."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="interpreter of the clean environment")
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--extras", action="store_true", help="also resolve all extras together")
    args = parser.parse_args()
    constraints = args.constraints.absolute()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = build(folder)
        python = environment(folder / "clean", args.python)
        # Without --no-compile, pip compiles thousands of files that nothing here imports.
        pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", constraints]
        run(*pip, wheel, cwd=folder)
        use(python, folder)
        check_types(python, folder)
        run(*pip, "--force-reinstall", "--no-deps", source, cwd=folder)
        run(python, "-m", "skmixdp", "--version", cwd=folder)
        if args.extras:
            resolve_extras(python, constraints, wheel, folder)
    print("the wheel and the source distribution install and run")


if __name__ == "__main__":
    main()
