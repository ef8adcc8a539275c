"""Hostile rows, containers, labels, names and bytes, as strategies of hypothesis."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis.extra.numpy import arrays

from tests.parameters import EXTREMES

from .limits import one_in, pick, seeds

#: Names of classes, columns, data sets and files that mean something elsewhere.
NAMES = (
    *("a", "", " ", "a\nb", "\r\n", "a\tb", "\x00", "\x1b[2J\x1b[31m", "\x07", "\x7f", "\u202eabc"),
    *("../../outside", "/etc/passwd", "..", ".", "~", "C:\\con", "a/b", "-rf", "--force", "*", "a\\b"),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "</table><h1>x", "{{7*7}}"),
    *('=HYPERLINK("http://x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "a,b", 'a"b', "a'b", "a;b", "|", "`x`"),
    *("$\\frac{", "$x$", "_", "__class__", "%s%n", "{0}", "{x.__class__}", "'; DROP TABLE charges; --"),
    *("nan", "None", "True", "1", "1.0", "01", "0x1", "inf", "NA", "X_pub", "y", "ünï", "🦆", "Σ", "ﬀ", "İ"),
    *("x" * 300, "e\u0301", "\u00e9", "\ud800", "\ufeffx"),
)

#: A name from the list, two of them together, or any text.
names = pick(NAMES) | st.tuples(pick(NAMES), pick(NAMES)).map("".join) | st.text(max_size=12)

_FINITE = st.floats(allow_nan=False, allow_infinity=False) | pick(EXTREMES)

#: Rows (n, d) made of plain ones with a scale and a generator.
_SHAPES: tuple[Callable[..., np.ndarray], ...] = (
    *[lambda X, scale, rng: X] * 5,
    lambda X, scale, rng: np.clip(X, -1, 1) * scale,
    lambda X, scale, rng: np.clip(X, -1, 1) + scale,
    lambda X, scale, rng: np.clip(X, -1, 1) * 10.0 ** rng.integers(-300, 300, size=X.shape[1]),
    lambda X, scale, rng: np.clip(X, -1, 1) * 10.0 ** rng.integers(-320, 308, size=(len(X), 1)),
    lambda X, scale, rng: _cancelling(X),
    lambda X, scale, rng: np.round(X) * -0.0,
    lambda X, scale, rng: np.repeat(X[:1], len(X), axis=0),
    lambda X, scale, rng: np.where(rng.random(X.shape) < 0.8, 0.0, X),
    lambda X, scale, rng: X * 5e-324,
)


def _cancelling(X: np.ndarray) -> np.ndarray:
    """Rows that cancel but for a subnormal rest."""
    odd = np.arange(len(X))[:, None] % 2
    X = np.where(odd, -X, X[::-1])
    return np.where(odd, -np.roll(X, 1, axis=0), X) + 5e-324


@st.composite
def matrices(draw: Any, n: int, d: int) -> np.ndarray:
    """Finite rows (n, d) whose norms, means or entries are extreme, or that are plain."""
    if draw(one_in(8)):
        return draw(arrays(np.float64, (n, d), elements=_FINITE))
    rng = np.random.default_rng(draw(seeds))
    scale = 10.0 ** draw(pick((-320, -300, -160, -20, 20, 150, 300, 307)))
    with np.errstate(all="ignore"):
        X = draw(pick(_SHAPES))(rng.normal(size=(n, d)), scale, rng)
    if X.size:
        for value in draw(st.lists(pick(EXTREMES), max_size=4)):
            X.flat[rng.integers(X.size)] = value
    return np.nan_to_num(X, posinf=1.7e308, neginf=-1.7e308)


def _strided(X: np.ndarray) -> np.ndarray:
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


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
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": _unaligned,
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "tuples": lambda X: [tuple(row) for row in X.tolist()],
    "objects": lambda X: X.astype(object),
    "frame": lambda X: pd.DataFrame(X).add_prefix("c"),
    "frame of objects": lambda X: pd.DataFrame(X.astype(object)).add_prefix("c"),
    "nullable frame": lambda X: pd.DataFrame(X).add_prefix("c").astype("Float64"),
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
    columns = np.tile(np.arange(d)[::-1], n)
    return sp.csr_array((X[:, ::-1].ravel(), columns, np.arange(n + 1) * d), shape=(n, d))


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

    with warnings.catch_warnings(action="ignore"):
        return np.matrix(X)


def _sparse_objects(X: np.ndarray) -> Any:
    held = sp.csr_array(X)
    held.data = held.data.astype(object)
    return held


@st.composite
def held(draw: Any, X: np.ndarray, odd: int = 3) -> tuple[str, Any]:
    """The name of a container, and rows in it: in one of ``odd`` cases not the same rows, never if 0."""
    containers = ODD if odd and draw(one_in(odd)) else FAITHFUL
    name = draw(pick([*containers]))
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


@st.composite
def labels(draw: Any, index: np.ndarray, kind: str) -> Any:
    """Labels for class indices, in some container."""
    values = [LABELS[kind](int(j)) for j in index]
    objects = np.empty(len(values), object)
    objects[:] = values
    try:
        flat = np.asarray(values)
    except ValueError:
        flat = objects
    forms = [*[flat] * 4, values, objects, pd.Series(values)]
    if flat.ndim == 1:
        forms.append(flat.reshape(-1, 1))
        forms += [pd.Series(pd.Categorical(values))] if flat.dtype.kind in "iU" else []
    return forms[draw(st.integers(0, len(forms) - 1))]


_WHOLE = (0, 1, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
_PIECES = (b"\x00", b"\xff" * 8, b"\x80\x04c", b"PK\x03\x04", b"\n", b'"', b"{", b"NaN", b"\x93NUMPY")


@st.composite
def damaged(draw: Any, content: bytes, *, most: int = 6) -> bytes:
    """A file's content after some edits: bytes changed, cut, doubled, moved, or put in from elsewhere."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, most))):
        size = len(data)
        # Formats keep their structure at both ends of a file.
        near = st.integers(0, min(size, 64))
        at = draw(st.integers(0, size) | near | near.map(lambda back, size=size: size - back))
        kind, length = draw(st.integers(0, 7)), draw(pick((1, 1, 2, 4, 8, 16, 64)))
        if kind == 0:
            data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
        elif kind == 1 and at < size:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == 2:
            width, order = draw(pick((1, 2, 4, 8))), draw(pick(("little", "big")))
            data[at : at + width] = (draw(pick(_WHOLE)) % 256**width).to_bytes(width, order)
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            data[at:at] = data[at : at + length]
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            data[at:at] = draw(pick(_PIECES))
        elif kind == 7:
            other = draw(st.integers(0, size))
            data[at : at + length] = data[other : other + length]
    return bytes(data)


#: A pickle that would call a function: reading it is a way in.
PICKLE = b"cposix\ngetpid\n(tR."
