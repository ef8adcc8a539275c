"""The command line in process: hostile flags, files and names of files."""

import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skmixdp import MixedDPLogisticRegression
from skmixdp._cli.main import main
from skmixdp.privacy import PrivacyLedger

from .files import PICKLE, row_files
from .harness import (
    SECRET,
    SECRET_SIGNS,
    SECRET_TEXT,
    Draw,
    PromiseError,
    Tally,
    attempt,
    case,
    check_html,
    describe,
    fresh_folder,
)
from .values import NAMES, damaged

#: Values of flags.
WORDS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "nan",
        "inf",
        "-inf",
        "1e-400",
        "1e400",
        "1e-5",
        "0.5",
        "1" * 400,
        "0x10",
        "1_0",
        "\u0661",
    ),
    *("", " ", "kind", "a", "row", "a,b", "a,,b", ",", "ant,bee", '"ant,bee', "true,false", "0,1", "1e999,2"),
    *(
        "public",
        "none",
        "unit",
        "clip",
        "auto",
        "adamix",
        "float",
        "discrete",
        "replace_one",
        "--",
        "-",
        "--out",
    ),
    *NAMES,
)

#: Flags of each command, and the kind of value that each takes.
FLAGS: dict[str, dict[str, str]] = {
    "fit": {
        **dict.fromkeys(("--private", "--public", "--labels", "--public-labels", "--ledger"), "file"),
        **dict.fromkeys(("--out", "--report"), "output"),
        **dict.fromkeys(
            (
                *(
                    "--label-column",
                    "--classes",
                    "--id",
                    "--encode",
                    "--epsilon",
                    "--delta",
                    "--n-steps",
                    "--seed",
                ),
                *(
                    "--noise-multiplier",
                    "--neighboring",
                    "--noise",
                    "--dataset",
                    "--ledger-epsilon",
                    "--ledger-delta",
                ),
                *("--algorithm", "--row-norm"),
            ),
            "word",
        ),
        **dict.fromkeys(("--no-center", "--no-intercept", "--force", "--quiet"), "none"),
    },
    "predict": {
        "--out": "output",
        **dict.fromkeys(("--label-column", "--id", "--weights", "--device", "--on-error"), "word"),
        **dict.fromkeys(("--proba", "--force", "--quiet"), "none"),
    },
    "report": dict.fromkeys(("--json", "--html"), "none"),
    "extract": {
        "--out": "output",
        "--labels": "file",
        **dict.fromkeys(
            ("--model", "--weights", "--options", "--batch-size", "--device", "--on-error"), "word"
        ),
    },
}


@cache
def files() -> dict[str, bytes]:
    """Files of a folder: good tables, a model, a ledger, and broken ones."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)).round(3), np.arange(12) % 2
    private = pd.DataFrame(X, columns=["a", "b"]).assign(kind=np.array(["ant", "bee"])[y])
    private.loc[3, "a"] = SECRET
    secret = private.assign(row=[SECRET_TEXT] * 12)
    public = pd.DataFrame(X[:8] + 0.1, columns=["a", "b"]).assign(kind=np.array(["ant", "bee"])[y[:8]])
    unknown = private.assign(kind=["ant", SECRET_TEXT] * 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = MixedDPLogisticRegression("noisy-gd", n_steps=1, random_state=0)
        clf.fit(private[["a", "b"]], private["kind"], public[["a", "b"]], public["kind"])
    with fresh_folder() as folder:
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


def _value(draw: Draw, kind: str) -> list[str]:
    if kind == "none":
        return []
    if kind == "file":
        return [draw.pick((*files(), "missing.csv", ".", "a\nb.csv", "\x1b[31m.csv", "x" * 300 + ".csv"))]
    if kind == "output":
        names = (
            "out.safetensors",
            "out.csv",
            "out.json",
            "out.html",
            "pub.csv",
            ".",
            "no/such/folder.csv",
            "out",
            "./up.csv",
        )
        return [draw.pick((*names, "a\nb.csv", "x" * 300 + ".csv", "\x00.csv", "/dev/null", ""))]
    return [str(draw.pick(WORDS))]


def arguments(draw: Draw) -> list[str]:
    """A command line: a good one with some flags changed, or a heap of flags."""
    command = draw.pick(("fit", "fit", "fit", "predict", "predict", "report", "extract"))
    good: dict[str, tuple[str, ...]] = {
        "fit": (
            "--private priv.csv --public pub.csv --label-column kind --out out.safetensors",
            "--private rows.npz --out out.safetensors --n-steps 1 --algorithm noisy-gd",
            "--private named.csv --public pub.csv --label-column kind --id row --out o.safetensors",
            "--private unknown.csv --public pub.csv --label-column kind --out out.safetensors",
            "--private priv.csv --label-column kind --encode columns.json --out out.safetensors",
        ),
        "predict": (
            "m.safetensors pub.csv --label-column kind",
            "m.safetensors features.csv",
            "m.safetensors rows.npz",
        ),
        "report": ("m.safetensors", "l.sqlite", "missing.sqlite"),
        "extract": ("rows.npy --model scattering --out out.npz",),
    }
    start = draw.pick(good[command]).split()
    if command == "fit":
        start += ["--n-steps", "1", "--algorithm", "noisy-gd"] if "--algorithm" not in start else []
        if draw.chance(4):
            start += ["--ledger", "l.sqlite", "--dataset", draw.pick(("d", "e"))]
    for _ in range(draw.pick((0, 1, 1, 2, 3))):
        kind = draw.whole(0, 4)
        flags = FLAGS[command]
        if kind <= 2 and flags:
            flag = draw.pick([*flags])
            start += [flag, *_value(draw, flags[flag])]
        elif kind == 3 and start:
            start.pop(draw.whole(0, len(start) - 1))
        elif start:
            start[draw.whole(0, len(start) - 1)] = str(draw.pick((*WORDS, *files(), "missing.csv")))
    return [command, *start] if draw.whole(0, 40) else [str(draw.pick(WORDS)), *start]


def contents(folder: Path) -> dict[str, bytes]:
    """All files, but for a ledger, which counts what is charged and may be opened."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".sqlite" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def check_command_line(draw: Draw, tally: Tally) -> None:
    """A command ends with 0 or 2. With 2, one line says why, and nothing was written or charged."""
    args = arguments(draw)
    # Many steps take as long as they say, and a joblib file is a pickle by definition.
    if any(re.fullmatch(r"\d{4,}|1_0", arg) for arg in args):
        return
    describe(args=args)
    unpickles = any(arg in ("predict", "report") for arg in args) and not any(
        arg.endswith((".safetensors", ".sqlite")) for arg in args[1:2]
    )  # any other model is a pickle by joblib, which the help says
    with fresh_folder() as folder, case(tally, folder, pickles=unpickles) as this:
        for name, content in files().items():
            (folder / name).write_bytes(content)
        if draw.chance(4):
            name = draw.pick([*files()])
            if name != "l.sqlite":
                (folder / name).write_bytes(damaged(draw, files()[name], most=2))
        this.written.clear()
        before, charged = contents(folder), _n_charges(folder)

        def act() -> Any:
            try:
                return main(args)
            except SystemExit as end:
                return end.code

        end = attempt(tally, act, ValueError, secrets=SECRET_SIGNS)
        if end.error is not None:
            raise PromiseError(f"an error escapes: {end.message}") from end.error
        said = end.complained
        tally.ended.subtract(["done"])
        tally.ended[f"exit {end.result}"] += 1
        if end.result not in (0, 2):
            raise PromiseError(f"exit code {end.result}: {said[-1500:]}")
        if end.result == 2:
            lines = [line for line in said.splitlines() if ": warning: " not in line]
            if len(lines) != 1 or not said.startswith("skmixdp"):
                raise PromiseError(f"{len(lines)} lines: {said!a:.1500}")
            if contents(folder) != before:
                raise PromiseError("a refused command changed files")
            if _n_charges(folder) != charged:
                raise PromiseError(f"a refused command charged the ledger: {said}")
        if not said.replace("\n", "").isprintable():
            raise PromiseError(f"control characters on the screen: {said!a:.500}")
        if end.printed.startswith("<"):
            check_html(end.printed, NAMES)


def _n_charges(folder: Path) -> int:
    path = folder / "l.sqlite"
    try:
        return len(PrivacyLedger(path).report().charges) if path.exists() else 0
    except (ValueError, OSError):
        return -1
