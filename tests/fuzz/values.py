"""Hostile numbers, rows, labels, names and bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from .harness import Draw

#: Finite numbers at which arithmetic overflows, underflows or rounds.
EXTREMES = (
    *(0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 1e300, -1e300, 5e-324, -5e-324, 2.2250738585072014e-308),
    *(1.7976931348623157e308, -1.7976931348623157e308, 1e154, 1e-154, 1e-162, 3.4e38, 3.5e38, 1e-38, 1e-45),
    *(1e-46, 65504.0, 65520.0, 2.0**53, 2.0**53 + 2, 1 + 2**-52, 1e16, 1e-16, 0.1),
)
NOT_FINITE = (np.nan, np.inf, -np.inf)

#: Names of classes, columns, data sets and files that mean something elsewhere.
NAMES = (
    *(
        "a",
        "",
        " ",
        "a\nb",
        "\r\n",
        "a\tb",
        "\x00",
        "\x1b[2J\x1b[31m",
        "\x07",
        "\x7f",
        "\u202eabc",
        "\ufeffx",
    ),
    *("../../outside", "/etc/passwd", "..", ".", "~", "C:\\con", "a/b", "-rf", "--force", "*", "a\\b"),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "</table><h1>x", "{{7*7}}"),
    *('=HYPERLINK("http://x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "a,b", 'a"b', "a'b", "a;b", "|", "`x`"),
    *("$\\frac{", "$x$", "_", "__class__", "%s%n", "{0}", "{x.__class__}", "'; DROP TABLE charges; --"),
    *("nan", "None", "True", "1", "1.0", "01", "0x1", "inf", "NA", "X_pub", "y", "ünï", "🦆", "Σ", "ﬀ", "İ"),
    *("x" * 300, "e\u0301", "\u00e9", "\ud800"),
)


def matrix(draw: Draw, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Finite rows (n, d) whose norms, means or entries are extreme, or that are plain."""
    X = rng.normal(size=(n, d))
    kind = draw.whole(0, 14)
    scale = 10.0 ** draw.pick((-320, -308, -300, -160, -20, 20, 150, 160, 300, 307))
    with np.errstate(all="ignore"):
        if kind == 5:
            X = np.clip(X, -1, 1) * scale
        elif kind == 6:
            X = np.full((n, d), draw.pick(EXTREMES))
        elif kind == 7:
            X = np.clip(X, -1, 1) * 10.0 ** rng.integers(-300, 300, size=d)
        elif kind == 8:
            X = np.clip(X, -1, 1) * 10.0 ** rng.integers(-320, 308, size=(n, 1))
        elif kind == 9:  # rows that cancel but for a subnormal rest
            X = np.where(np.arange(n)[:, None] % 2, -X, X[::-1] if n else X)
            X = np.where(np.arange(n)[:, None] % 2, -np.roll(X, 1, axis=0), X) + 5e-324
        elif kind == 10:
            X = np.round(X) * -0.0
        elif kind == 11:
            X = np.repeat(X[:1], n, axis=0)
        elif kind == 12:
            X = np.where(rng.random((n, d)) < 0.8, 0.0, X)
        elif kind == 13:
            X = X * 5e-324
        elif kind == 14:
            X = np.clip(X, -1, 1) + scale
    for _ in range(draw.pick((0, 0, 0, 1, 1, 2, 4))):
        if X.size:
            X.flat[rng.integers(X.size)] = draw.pick(EXTREMES)
    return np.nan_to_num(X, posinf=1.7e308, neginf=-1.7e308)


def _strided(X: np.ndarray) -> np.ndarray:
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _backwards(X: np.ndarray) -> np.ndarray:
    return X[::-1, ::-1].copy()[::-1, ::-1]


def _unaligned(X: np.ndarray) -> np.ndarray:
    raw = np.zeros(X.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(), np.uint8)
    return raw[1:].view(X.dtype).reshape(X.shape)


def _tensor(X: np.ndarray) -> Any:
    import torch

    return torch.tensor(X)


class Lazy:
    """Rows behind ``__array__`` alone."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._X, dtype=dtype)

    def __len__(self) -> int:
        return len(self._X)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._X.shape


#: Containers that hold the same float64 rows.
FAITHFUL: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda X: X,
    "column-major": np.asfortranarray,
    "strided": _strided,
    "read-only": _read_only,
    "backwards": _backwards,
    "unaligned": _unaligned,
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "tuples": lambda X: [tuple(row) for row in X.tolist()],
    "objects": lambda X: X.astype(object),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "frame of objects": lambda X: pd.DataFrame(
        X.astype(object), columns=[f"c{j}" for j in range(X.shape[1])]
    ),
    "nullable frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).astype(
        "Float64"
    ),
    "numbered frame": pd.DataFrame,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
    "dok": lambda X: sp.dok_array(X),
    "tensor": _tensor,
    "behind __array__": Lazy,
    "masked, nothing hidden": lambda X: np.ma.masked_array(X, mask=np.zeros(X.shape, bool)),
}


def _csr_out_of_order(X: np.ndarray) -> Any:
    """Column indices in falling order, with zeros that are stored."""
    n, d = X.shape
    return sp.csr_array(
        (X[:, ::-1].ravel(), np.tile(np.arange(d)[::-1], n), np.arange(n + 1) * d), shape=(n, d)
    )


def _csr_twice(X: np.ndarray) -> Any:
    """Each entry is stored in two halves, which add up."""
    n, d = X.shape
    entries = np.concatenate([X / 2, X / 2], axis=1).ravel()
    return sp.csr_array((entries, np.tile(np.arange(d), 2 * n), np.arange(n + 1) * 2 * d), shape=(n, d))


def _csr_broken(X: np.ndarray) -> Any:
    """Column indices that point outside."""
    held = sp.csr_array(X)
    held.indices = held.indices + 7
    return held


FAITHFUL |= {"csr out of order": _csr_out_of_order, "csr with duplicates": _csr_twice}

#: Containers that hold other rows, or none that a fit could take.
ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "float32": lambda X: _cast(X, np.float32),
    "float16": lambda X: _cast(X, np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "whole numbers": lambda X: _cast(X, np.int64),
    "bytes": lambda X: _cast(X, np.uint8),
    "bools": lambda X: X > 0,
    "text": lambda X: X.astype(str),
    "byte strings": lambda X: X.astype("S"),
    "complex": lambda X: X + 1j,
    "dates": lambda X: _cast(X, np.int64).astype("datetime64[s]"),
    "generator": lambda X: (row for row in X),
    "iterator": lambda X: iter(X.tolist()),
    "map": lambda X: map(list, X),
    "set": lambda X: {tuple(row) for row in X.tolist()},
    "dict": lambda X: dict(enumerate(X.tolist())),
    "flat": lambda X: X.ravel(),
    "deep": lambda X: X[:, :, None],
    "scalar": lambda X: 1.0,
    "none": lambda X: None,
    "string": lambda X: "rows.csv",
    "object": lambda X: object(),
    "function": lambda X: len,
    "class": lambda X: dict,
    "ragged": lambda X: [row[: i % (len(row) + 1)] for i, row in enumerate(X.tolist())],
    "objects with None": lambda X: _with(X.astype(object), None),
    "objects with text": lambda X: _with(X.astype(object), "7"),
    "objects with huge": lambda X: _with(X.astype(object), 10**400),
    "objects with list": lambda X: _with(X.astype(object), [1.0]),
    "objects with self": lambda X: _with(X.astype(object), X),
    "structured": lambda X: np.zeros(len(X), dtype=[("a", "f8"), ("b", "f8")]),
    "masked": lambda X: np.ma.masked_array(X, mask=X > 0),
    "np.matrix": lambda X: _matrix(X),
    "series": lambda X: pd.Series(list(X)),
    "frame with twin columns": lambda X: pd.DataFrame(X, columns=["a"] * X.shape[1]),
    "frame with odd names": lambda X: pd.DataFrame(
        X, columns=[NAMES[j % len(NAMES)] for j in range(X.shape[1])]
    ),
    "frame with mixed names": lambda X: pd.DataFrame(
        X, columns=[("a", 1, None)[j % 3] for j in range(X.shape[1])]
    ),
    "frame with dates": lambda X: pd.DataFrame(X).assign(when=pd.Timestamp("2020-01-01")),
    "frame with categories": lambda X: pd.DataFrame({"a": pd.Categorical(["u"] * len(X))}),
    "frame with missing": lambda X: pd.DataFrame(X).astype("Float64").mask(X > 0),
    "csr broken": _csr_broken,
    "csr of objects": lambda X: _sparse_objects(X),
    "bsr": lambda X: sp.bsr_array(X),
    "lil of bools": lambda X: sp.lil_array(X > 0),
    "sparse complex": lambda X: sp.csr_array(X + 1j),
    "tensor of halves": lambda X: _tensor(X).half(),
    "tensor with gradients": lambda X: _tensor(X).requires_grad_(),
    "sparse tensor": lambda X: _tensor(X).to_sparse(),
    "tensor of whole numbers": lambda X: _tensor(_cast(X, np.int64)),
    "memory view": lambda X: memoryview(np.ascontiguousarray(X)) if X.size else None,
}


def _cast(X: np.ndarray, kind: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return X.astype(kind)


def _with(X: np.ndarray, entry: Any) -> np.ndarray:
    if X.size:
        X[0, 0] = entry
    return X


def _matrix(X: np.ndarray) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(X)


def _sparse_objects(X: np.ndarray) -> Any:
    held = sp.csr_array(X)
    held.data = held.data.astype(object)
    return held


def hold(draw: Draw, X: np.ndarray, *, odd: int = 3) -> tuple[str, Any]:
    """Rows in some container, in one of ``odd`` cases not the same rows."""
    containers = ODD if odd and draw.chance(odd) else FAITHFUL
    name = draw.pick([*containers])
    return name, containers[name](X)


#: Labels of k classes, as functions of the class index.
LABELS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda j: j,
    "from seven": lambda j: 7 + 3 * j,
    "negative": lambda j: -j,
    "huge": lambda j: 2**62 + j,
    "beyond 64 bits": lambda j: 2**70 + j,
    "whole floats": float,
    "negative zero": lambda j: -0.0 if j == 0 else float(j),
    "huge floats": lambda j: 1e300 * (j + 1),
    "text": lambda j: f"class {j}",
    "digits": str,
    "odd names": lambda j: NAMES[j % len(NAMES)] + ("" if j < len(NAMES) else str(j)),
    "bytes": lambda j: b"%d" % j,
    "fractions": lambda j: j + 0.5,
    "tuples": lambda j: (j, "a"),
    "dates": lambda j: np.datetime64("2020-01-01") + j,
}


def labels(draw: Draw, index: np.ndarray, kind: str) -> Any:
    """Labels for class indices, in some container."""
    values = [LABELS[kind](int(j)) for j in index]
    form = draw.whole(0, 8)
    try:
        flat = np.asarray(values)
    except ValueError:
        flat = np.empty(len(values), object)
        flat[:] = values
    if form == 4:
        return values
    if form == 5:
        held = np.empty(len(values), object)
        held[:] = values
        return held
    if form == 6:
        return pd.Series(values)
    if form == 7:
        return flat.reshape(-1, 1) if flat.ndim == 1 else flat
    if form == 8 and flat.ndim == 1 and flat.dtype.kind in "iU":
        return pd.Series(pd.Categorical(values))
    return flat


#: What somebody might pass for any parameter.
HOSTILE = (
    *(None, True, False, 0, 1, 2, -1, 0.5, -0.5, 0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, 5e-324),
    *(
        10**400,
        -(10**400),
        2**53,
        1j,
        "",
        "auto",
        "public",
        "private",
        "yes",
        "nan",
        "1",
        "a\nb",
        "\x00",
        b"auto",
    ),
    *((), [], {}, set(), [1], (1, 2), {"a": 1}, object, len, dict, ..., NotImplemented, range(3), slice(3)),
    *(np.float64(0.5), np.float32(0.5), np.float16(0.5), np.int8(1), np.bool_(True), np.str_("auto")),
    *(
        np.array(0.5),
        np.array([0.5]),
        np.array([]),
        np.array([np.nan, 1.0]),
        np.zeros((2, 2)),
        np.array("auto"),
    ),
    *(
        np.array([None]),
        pd.NA,
        pd.NaT,
        pd.Timestamp("2020-01-01"),
        np.datetime64("NaT"),
        "x" * 5000,
        [0] * 5000,
    ),
)


class BadRepr:
    """An object whose text has line breaks, as some libraries' have."""

    def __repr__(self) -> str:
        return "BadRepr(\n  1\n)"


HOSTILE = (*HOSTILE, BadRepr())


def hostile(draw: Draw) -> Any:
    """A value for a parameter that may be of any kind."""
    return draw.pick(HOSTILE) if draw.whole(0, 3) else draw.pick(EXTREMES)


def damaged(draw: Draw, content: bytes, *, most: int = 6) -> bytes:
    """A file's content after some edits: bytes changed, cut, doubled, moved, or put in from elsewhere."""
    data = bytearray(content)
    for _ in range(draw.whole(1, most)):
        size = len(data)
        # Formats keep their structure at both ends of a file.
        near = min(size, 64)
        place = draw.whole(0, 2)
        at = draw.whole(0, size if place == 0 else near)
        at = size - at if place == 2 else at
        kind, length = draw.whole(0, 7), draw.pick((1, 1, 2, 4, 8, 16, 64))
        if kind == 0:
            data[at : at + 1] = bytes([draw.whole(0, 255)])
        elif kind == 1 and at < size:
            data[at] ^= 1 << draw.whole(0, 7)
        elif kind == 2:
            number = draw.pick(
                (0, 1, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
            )
            width = draw.pick((1, 2, 4, 8))
            data[at : at + width] = (number % 256**width).to_bytes(width, draw.pick(("little", "big")))
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            data[at:at] = data[at : at + length]
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            data[at:at] = draw.pick(
                (b"\x00", b"\xff" * 8, b"\x80\x04c", b"PK\x03\x04", b"\n", b'"', b"{", b"NaN", b"\x93NUMPY")
            )
        elif kind == 7:
            other = draw.whole(0, size)
            data[at : at + length] = data[other : other + length]
    return bytes(data)


#: A pickle that would call a function: reading it is a way in.
PICKLE = b"cposix\ngetpid\n(tR."
