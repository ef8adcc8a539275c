"""Code of other libraries, on the page for those who come from them, runs where they are installed."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import elsewhere

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")

#: Interpreters that have the peers; ``make peers`` and ``make interpret`` set up all but that of the tests.
_PEERS = ROOT / ".venv-peers" / "bin" / "python"
PYTHON = {
    "diffprivlib": elsewhere.PYTHON,
    "opacus": _PEERS,
    "opendp": Path(sys.executable),
    "jax_privacy": _PEERS,
    "interpret": ROOT / ".venv-interpret" / "bin" / "python",
}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.M | re.S)


def is_there(peer):
    """Whether the peer is installed: the environments of their own have a mark once they are complete."""
    python = PYTHON[peer]
    return bool(find_spec(peer)) if python == Path(sys.executable) else (python.parents[1] / ".done").exists()


@pytest.mark.slow  # `make peers` runs it
@pytest.mark.parametrize("peer", PYTHON)
def test_code_of_a_peer_runs_as_printed(peer, tmp_path):
    if not is_there(peer):
        pytest.skip(f"{peer} is not installed, so its code on the page is not run; see `make peers`")
    rows, (code,) = blocks("python")[0], blocks(f"python {peer}")
    done = subprocess.run(
        [PYTHON[peer], "-c", rows + code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # A score or two, and what was spent.
    assert re.search(r"\d\.\d+", done.stdout)


def test_the_page_states_the_versions_that_are_run():
    pinned = "".join(
        (ROOT / file).read_text(encoding="utf-8")
        for file in (
            "benchmarks/diffprivlib-requirements.txt",
            "benchmarks/peers-requirements.txt",
            "benchmarks/interpret-requirements.txt",
            "constraints.txt",
        )
    )
    said = re.search(
        r"with diffprivlib ([\d.]+), Opacus\s([\d.]+), OpenDP ([\d.]+), jax_privacy ([\d.]+) and "
        r"interpret-core ([\d.]+)\. ",
        TEXT,
    )
    names = ("diffprivlib", "opacus", "opendp", "jax-privacy", "interpret-core")
    for name, version in zip(names, said.groups(), strict=True):
        assert set(re.findall(rf"^{name}==(\S+)$", pinned, flags=re.M)) == {version}
