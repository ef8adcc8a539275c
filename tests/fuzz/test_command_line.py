"""The command line in process: hostile flags, files and names of files."""

import re
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given

from skmixdp import MixedDPLogisticRegression
from skmixdp.privacy import PrivacyLedger
from tests.private_names import main
from tests.secrets import NUMBER, TEXT

from .limits import attempt, check_html, fuzzed, limits, one_in, pick
from .test_files import row_files
from .values import NAMES, PICKLE, damaged

pytestmark = pytest.mark.filterwarnings("ignore")

_WORDS = """
0 -1 1 2 nan inf -inf 1e-400 1e400 1e-5 0.5 0x10 1_0 \N{ARABIC-INDIC DIGIT ONE} 0,1 1e999,2 kind a row a,b
a,,b , ant,bee "ant,bee true,false public none unit clip auto adamix float discrete replace_one -- - --out
"""

#: Values of flags.
WORDS = (*_WORDS.split(), "", " ", "1" * 400, *NAMES)


def _flags(**kinds: str) -> dict[str, str]:
    """The kind of value that each flag takes."""
    return {f"--{name}": kind for kind, flags in kinds.items() for name in flags.split()}


#: Flags of each command.
FLAGS = {
    "fit": _flags(
        file="private public labels public-labels ledger",
        output="out report",
        word="label-column classes id encode epsilon delta n-steps seed noise-multiplier neighboring noise "
        "dataset ledger-epsilon ledger-delta algorithm",
        none="force quiet",
    ),
    "predict": _flags(output="out", word="label-column id weights device on-error", none="proba force quiet"),
    "report": _flags(none="json html"),
    "extract": _flags(output="out", file="labels", word="model weights options batch-size device on-error"),
}

#: Command lines to begin with.
GOOD = {
    "fit": (
        "--private priv.csv --public pub.csv --label-column kind --out out.safetensors",
        "--private rows.npz --out out.safetensors --n-steps 1 --algorithm noisy-gd",
        "--private named.csv --public pub.csv --label-column kind --id row --out o.safetensors",
        "--private unknown.csv --public pub.csv --label-column kind --out out.safetensors",
        "--private priv.csv --label-column kind --encode columns.json --out out.safetensors",
    ),
    "predict": (
        *("m.safetensors pub.csv --label-column kind", "m.safetensors features.csv"),
        "m.safetensors rows.npz",
    ),
    "report": ("m.safetensors", "l.sqlite", "missing.sqlite"),
    "extract": ("rows.npy --model scattering --out out.npz",),
}

_ODD_FILES = ("missing.csv", ".", "a\nb.csv", "\x1b[31m.csv", "x" * 300 + ".csv")
_OUTPUTS = (
    *("out.safetensors", "out.csv", "out.json", "out.html", "pub.csv", ".", "no/such/folder.csv", "out", ""),
    *("./up.csv", "/dev/null", "a\nb.csv", "x" * 300 + ".csv", "\x00.csv"),
)


@cache
def files() -> dict[str, bytes]:
    """Files of a folder: good tables, a model, a ledger, and broken ones."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)).round(3), np.arange(12) % 2
    private = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.array(["ant", "bee"])[y])
    private.loc[3, "a"] = NUMBER
    secret = private.assign(row=[TEXT] * 12)
    public = pd.DataFrame(X[:8] + 0.1, columns=["a", "b"]).assign(kind=np.array(["ant", "bee"])[y[:8]])
    unknown = private.assign(kind=["ant", TEXT] * 6)
    with warnings.catch_warnings(action="ignore"):
        clf = MixedDPLogisticRegression("noisy-gd", n_steps=1, random_state=0)
        clf.fit(private[["a", "b"]], private["kind"], public[["a", "b"]], public["kind"])
    with limits() as folder:
        clf.save(folder / "m.safetensors")
        PrivacyLedger(folder / "l.sqlite").add_dataset("d", epsilon=5.0, delta=1e-3)
        held = {name: (folder / name).read_bytes() for name in ("m.safetensors", "l.sqlite")}
    first = {ending: contents[0] for ending, contents in row_files().items()}
    return held | {
        "priv.csv": private.to_csv(index=False).encode(),
        "pub.csv": public.to_csv(index=False).encode(),
        "named.csv": secret.to_csv(index=False).encode(),
        "unknown.csv": unknown.to_csv(index=False).encode(),
        "features.csv": public[["a", "b"]].to_csv(index=False).encode(),
        "labels.csv": public[["kind"]].to_csv(index=False).encode(),
        "empty.csv": b"",
        "pickle.npz": PICKLE,
        "columns.json": b'{"numbers": {"a": [-3, 3], "b": [-3, 3]}}',
        "rows.npz": first[".npz"],
        "rows.npy": first[".npy"],
        "rows.parquet": first[".parquet"],
        "no ending": b"x",
        "=1+1.csv": public.to_csv(index=False).encode(),
    }


@st.composite
def values(draw: Any, kind: str) -> list[str]:
    """What is given to a flag of some kind."""
    if kind == "none":
        return []
    return [draw(pick({"file": (*files(), *_ODD_FILES), "output": _OUTPUTS, "word": WORDS}[kind]))]


@st.composite
def arguments(draw: Any) -> list[str]:
    """A command line: a good one with some flags changed, or a heap of flags."""
    command = draw(pick(("fit", "fit", "fit", "predict", "predict", "report", "extract")))
    words, flags = draw(pick(GOOD[command])).split(), FLAGS[command]
    if command == "fit":
        words += ["--n-steps", "1", "--algorithm", "noisy-gd"] if "--algorithm" not in words else []
        words += ["--ledger", "l.sqlite", "--dataset", draw(pick(("d", "e")))] if draw(one_in(4)) else []
    for _ in range(draw(pick((0, 1, 1, 2, 3)))):
        kind, place = draw(st.integers(0, 4)), draw(st.integers(0, max(0, len(words) - 1)))
        if kind <= 2:
            flag = draw(pick([*flags]))
            words += [flag, *draw(values(flags[flag]))]
        elif words:
            words[place : place + 1] = [] if kind == 3 else [draw(pick((*WORDS, *files(), "missing.csv")))]
    return [command if draw(st.integers(0, 40)) else draw(pick(WORDS)), *words]


def contents(folder: Path) -> dict[str, bytes]:
    """All files, but for a ledger, which counts what is charged and may be opened."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".sqlite" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@fuzzed(5)
@given(arguments(), st.data())
def test_command_line(args, data):
    """A command ends with 0 or 2. With 2, one line says why, and nothing was written or charged."""
    # Many steps take as long as they say, and a joblib file is a pickle by definition.
    assume(not any(re.fullmatch(r"\d{4,}|1_0", arg) for arg in args))
    unpickles = any(arg in ("predict", "report") for arg in args) and not any(
        arg.endswith((".safetensors", ".sqlite")) for arg in args[1:2]
    )  # any other model is a pickle by joblib, which the help says
    written = dict(files())
    if data.draw(one_in(4)) and (name := data.draw(pick([*written]))) != "l.sqlite":
        written[name] = data.draw(damaged(written[name], most=2))
    with limits(pickles=unpickles) as folder:
        for name, content in written.items():
            (folder / name).write_bytes(content)
        before, charged = contents(folder), _n_charges(folder)

        def act() -> Any:
            try:
                return main(args)
            except SystemExit as end:
                return end.code

        heard = attempt(act, ValueError, secret=True)
        said = heard.complained
        assert heard.error is None, f"an error escapes: {heard.everything}"
        assert heard.result in (0, 2), f"exit code {heard.result}: {said[-1500:]}"
        if heard.result == 2:
            lines = [line for line in said.splitlines() if ": warning: " not in line]
            assert len(lines) == 1 and said.startswith("skmixdp"), f"{len(lines)} lines: {said!a:.1500}"
            assert contents(folder) == before, "a refused command changed files"
            assert _n_charges(folder) == charged, f"a refused command charged the ledger: {said}"
        assert said.replace("\n", "").isprintable(), f"control characters on the screen: {said!a:.500}"
        if heard.printed.startswith("<"):
            check_html(heard.printed, NAMES)


def _n_charges(folder: Path) -> int:
    path = folder / "l.sqlite"
    with suppress(ValueError, OSError):
        return len(PrivacyLedger(path).report().charges) if path.exists() else 0
    return -1
