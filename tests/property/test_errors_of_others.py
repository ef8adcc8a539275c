"""Nothing of an error of another library, or of a cell, leaves an entry: no class, text, cause or note."""

import errno
import os
import pickle
import traceback
import warnings
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import skmixdp
from skmixdp import AdditiveDPClassifier, MixedDPLogisticRegression, MixedDPRidge, fit_many, private_pipeline
from skmixdp.inference import private_inference
from skmixdp.model_selection import private_evaluation
from skmixdp.preprocessing import NoisyScaler, PublicOnly, TableEncoder
from skmixdp.privacy import PrivacyLedger
from tests.private_names import is_own, own_state, public_code

SECRET, NUMBER = "HIV positive", 777123
#: What there is of the secrets in a message.
SIGNS = (SECRET, "HIV", str(NUMBER), "77712")


def said(error):
    """All that a traceback shows, with causes and contexts, shown or not, and the class."""
    text = "".join(traceback.format_exception(error)) + type(error).__qualname__
    for other in (error.__cause__, error.__context__):
        text += "" if other is None else said(other)
    return text


def left(action):
    """The error with which an action ends."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        action()
    return caught.value


# -- the guard --------------------------------------------------------------------------------


def in_package(code):
    """A function of a module that counts as one of the package."""
    module = {"__name__": f"{skmixdp.__name__}.made_up", "SECRET": SECRET}
    exec(code, module)
    return module["f"]


class Panic(BaseException):
    """As those of libraries in Rust, which are no ``Exception``."""


def raised(error, cause=None, note=None):
    def action():
        if note is not None:
            error.add_note(note)
        raise error from cause

    return action


def while_handling(error):
    def action():
        try:
            float(SECRET)
        except ValueError:
            raise error  # noqa: B904

    return action


def warned(category):
    def action():
        with warnings.catch_warnings(action="error"):
            warnings.warn(SECRET, category, stacklevel=1)

    return action


FOREIGN = {
    "a panic": raised(Panic(SECRET)),
    "a class by the name of a cell": raised(type(SECRET, (Exception,), {})()),
    "a ValueError": raised(ValueError(SECRET)),
    "a note": raised(ValueError("plain"), note=SECRET),
    "a cause": raised(ValueError("plain"), cause=KeyError(SECRET)),
    "a context": while_handling(ValueError("plain")),
    "a group": raised(ExceptionGroup("several", [ValueError(SECRET)])),
    "a file by the name of a cell": lambda: Path(f"/{SECRET}").read_bytes(),
    "an error of the disk": raised(OSError(errno.ENOSPC, SECRET)),
    "an OSError that is a text": raised(OSError(SECRET)),
    "a full memory": raised(MemoryError(SECRET)),
    "the full memory of NumPy": lambda: np.empty(2**48, f"U{NUMBER}"),
    "an assertion": raised(AssertionError(SECRET)),
    "the end of an iterator": raised(StopIteration(SECRET)),
    "a decoder": lambda: b"HIV positive \xff".decode(),
    "a warning of another library": warned(RuntimeWarning),
    "a conversion in C": in_package("def f(): float(SECRET)"),
    "a look-up in C": in_package("def f(): return {}[SECRET]"),
    "a call in C within a raise": in_package("def f(): raise ValueError(f'{float(SECRET)}')"),
    "a raise again": in_package(
        "def f():\n    try:\n        float(SECRET)\n    except ValueError as error:\n        raise error"
    ),
    "a cause of our own raise": in_package(
        "def f():\n    try: float(SECRET)\n    except ValueError as error: raise ValueError('own') from error"
    ),
    "a context of our own raise": in_package(
        "def f():\n    try: float(SECRET)\n    except ValueError: raise ValueError('own') from None"
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("depth", [1, 2])
def test_nothing_of_a_foreign_error_leaves(kind, depth):
    action = FOREIGN[kind]
    for _ in range(depth):
        action = own_state()(action)
    error = left(action)
    assert not any(sign in said(error) for sign in SIGNS), said(error)
    assert type(error) in (ValueError, OSError, MemoryError, FileNotFoundError) and is_own(error)
    assert error.__cause__ is None and error.__context__ is None and not hasattr(error, "__notes__")


def test_an_error_of_the_system_keeps_its_number():
    error = left(own_state()(FOREIGN["an error of the disk"]))
    assert error.errno == errno.ENOSPC and os.strerror(errno.ENOSPC) in str(error)


@pytest.mark.parametrize("error", [KeyboardInterrupt("now"), SystemExit(3), MemoryError()])
def test_interruptions_pass(error):
    assert left(own_state()(while_handling(error))) is error
    assert error.__context__ is None


def test_own_errors_pass_with_their_texts_through_processes_too():
    error = left(own_state()(in_package("def f(): raise TypeError('own text')")))
    assert (type(error), str(error)) == (TypeError, "own text")
    again = pickle.loads(pickle.dumps(error))
    assert left(own_state()(raised(again))) is again
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MixedDPLogisticRegression().predict([[1.0]])


def test_errors_of_code_that_sees_no_private_rows_pass():
    class OfUserError(Exception):
        pass

    assert type(left(own_state()(public_code()(raised(OfUserError("text")))))) is OfUserError


# -- cells ------------------------------------------------------------------------------------

N, ODD = 60, 17
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=N)
Y = (NUMBERS > 0).astype(int)


class Hostile:
    """A cell whose every method fails with an error that is no ``Exception``."""

    def fails(self, *arguments):
        raise Panic(SECRET)

    __float__ = __str__ = __repr__ = __eq__ = __len__ = __iter__ = __bool__ = __array__ = fails
    __hash__ = None


def with_odd(usual, odd):
    return [odd if place == ODD else usual for place in range(N)]


def arrow_text(kind="string"):
    pa = pytest.importorskip("pyarrow")
    cells = with_odd(b"1.5", b"HIV positive \xff")
    large = kind.startswith("large")
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int64 if large else np.int32)
    array = (pa.LargeStringArray if large else pa.StringArray).from_buffers(
        N, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))
    )
    return array.dictionary_encode() if kind.endswith("dictionary") else array


def of_arrow(kind, odd):
    pa = pytest.importorskip("pyarrow")
    return pa.array(with_odd(0, odd), pa.int32() if kind == "date32" else pa.int64()).cast(
        {
            "date32": pa.date32(),
            "date64": pa.date64(),
            "timestamp": pa.timestamp("s"),
            "zone": pa.timestamp("ms", "Asia/Tokyo"),
            "duration": pa.duration("s"),
        }[kind]
    )


def of_polars(odd, kind, *units):
    pl = pytest.importorskip("polars")
    return pl.Series("b", with_odd(0, odd), dtype=pl.Int64).cast(getattr(pl, kind)(*units))


FAR = {
    "seconds": NUMBER * 10**9,
    "days": 27_660_000,  # of the year 77712
}
#: Columns with one odd cell each.
CELLS = {
    "text that is not UTF-8": arrow_text,
    "long text that is not UTF-8": lambda: arrow_text("large"),
    "a category that is not UTF-8": lambda: arrow_text("dictionary"),
    "text of pandas that is not UTF-8": lambda: pd.Series(pd.arrays.ArrowExtensionArray(arrow_text())),
    "bytes": lambda: pytest.importorskip("pyarrow").array(with_odd(b"1", b"\xffHIV positive")),
    "a day of the year 77712": lambda: of_arrow("date32", FAR["days"]),
    "milliseconds of the year 77712": lambda: of_arrow("date64", FAR["days"] * 86_400_000),
    "a far second": lambda: of_arrow("timestamp", FAR["seconds"]),
    "a far moment in a zone": lambda: of_arrow("zone", FAR["seconds"]),
    "a far duration": lambda: of_arrow("duration", FAR["seconds"] // 100),
    "a moment of NumPy": lambda: np.array(with_odd("2020-01-01", "77712-01-01"), "M8[D]"),
    "a moment of polars": lambda: of_polars(FAR["seconds"] * 1000, "Datetime", "ms"),
    "the last moment of polars": lambda: of_polars(2**63 - 1, "Datetime", "us"),
    "the first moment of polars": lambda: of_polars(-(2**63), "Datetime", "ms"),
    "a moment of polars in a zone": lambda: of_polars(FAR["seconds"] * 1000, "Datetime", "ms", "Asia/Tokyo"),
    "a duration of polars": lambda: of_polars(FAR["seconds"] * 1000, "Duration", "ms"),
    "a text of polars": lambda: pytest.importorskip("polars").Series("b", with_odd("1.5", SECRET)),
    "a record of polars": lambda: pytest.importorskip("polars").Series(
        "b", with_odd({"a": "x"}, {"a": SECRET})
    ),
    "bytes of polars": lambda: pytest.importorskip("polars").Series("b", with_odd(b"1", b"\xffHIV positive")),
    "text of fixed width": lambda: np.array(with_odd("1.5", f"{SECRET}, {NUMBER}")),
    "a hostile cell": lambda: pd.Series(with_odd(1.5, Hostile()), dtype=object),
    "a huge integer": lambda: pd.Series(with_odd(1, NUMBER * 10**400), dtype=object),
    "a list of another length": lambda: pd.Series(with_odd([1.0], [1.0, float(NUMBER)]), dtype=object),
    "a date of Python": lambda: pd.Series(with_odd(date(2020, 1, 1), date(7771, 2, 3)), dtype=object),
    "a longest duration": lambda: pd.Series(with_odd(timedelta(1), timedelta.max), dtype=object),
    "an interval": lambda: pd.Series(with_odd(1.5, pd.Interval(0, NUMBER)), dtype=object),
}
FITTED = MixedDPLogisticRegression(classes=[0, 1], random_state=0).fit(NUMBERS[:, None], Y)


def frames(column):
    """A column next to one of numbers, in tables of each library that takes it."""
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    of_pandas = pd.Series(pd.arrays.ArrowExtensionArray(column)) if isinstance(column, pa.Array) else column
    for make in (
        lambda: pd.DataFrame({"a": NUMBERS, "b": of_pandas}),
        lambda: pa.table({"a": NUMBERS, "b": column if isinstance(column, pa.Array) else pa.array(column)}),
        lambda: pl.DataFrame({"a": NUMBERS, "b": column}),
    ):
        try:
            yield make()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise


def entries(column, ledger):
    """Calls that read the column as labels, ids, weights, groups or rows."""
    head = MixedDPLogisticRegression(classes=[0, 1], ledger=ledger, random_state=0)
    X = NUMBERS[:, None]
    yield lambda: head.fit(X, column)
    yield lambda: MixedDPRidge(ledger=ledger, random_state=0).fit(X, column)
    yield lambda: head.fit(X, Y, groups=column)
    yield lambda: head.fit(X, Y, sample_weight=column)
    yield lambda: private_inference(X, column, classes=[0, 1], ledger=ledger)
    yield lambda: private_evaluation(FITTED, X, column, epsilon=1.0, ledger=ledger)
    yield lambda: private_evaluation(FITTED, X, Y, by=column, by_values=["u"], epsilon=1.0, ledger=ledger)
    yield lambda: FITTED.private_score(X, column, noise_multiplier=9.0)
    for frame in frames(column):
        yield lambda frame=frame: head.fit(frame, Y)
        yield lambda frame=frame: AdditiveDPClassifier(classes=[0, 1], ledger=ledger).fit(frame, Y)
        yield lambda frame=frame: fit_many([head], frame, Y)
        yield lambda frame=frame: NoisyScaler(bounds=(0, 1), ledger=ledger).fit(frame)
        yield lambda frame=frame: FITTED.predict(frame)
        yield lambda frame=frame: PublicOnly(StandardScaler()).fit(X, X_pub=X).transform(frame)
        for kind in ((0, 9), ["u"], "text", "date", "boolean", "amount"):
            encoder = TableEncoder({"a": (-3, 3), "b": kind})
            yield lambda frame=frame, encoder=encoder: private_pipeline(encoder, head).fit(frame, Y)


@pytest.mark.covering
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CELLS)
def test_no_cell_is_quoted_by_any_entry_and_nothing_is_charged(kind, capfd):
    column = CELLS[kind]()
    ledger = PrivacyLedger(":memory:").add_dataset("rows", epsilon=1e6, delta=0.5)
    actions = [*entries(column, ledger)]
    capfd.readouterr()
    for action in actions:
        before, ended = len(ledger.charges()), None
        try:
            action()
        except BaseException as error:
            ended = error
        if ended is not None:
            assert isinstance(ended, ValueError | TypeError), said(ended)
            assert not any(sign in said(ended) for sign in SIGNS), said(ended)
            assert len(ledger.charges()) == before
    out, err = capfd.readouterr()
    assert not any(sign in out + err for sign in SIGNS)
    # polars takes text unchecked, and then panics when Python asks for it; the text of the panic has no cell.
    assert "panicked" not in err or "UTF-8" in kind
