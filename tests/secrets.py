"""Plants secrets in private rows, and looks for them in all that is said, held or written.

:class:`Heard` runs an action and keeps everything that it says: errors with those that Python shows with
them, warnings, standard output and error, and records of logs. :class:`Needles` finds numbers of private rows
in objects and in bytes: exact sums before noise, and rows themselves. Numbers with many significant bits are
found one by one. Others, such as counts, are found where all of an array follow one another.
"""

import functools
import gc
import io
import logging
import re
import traceback
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

#: A private text, a private number and the private row that has them. Nothing else has their digits.
TEXT, NUMBER, ROW = "SECRET-7731", 77317731.5, 217

#: What is there of them in any format, where other numbers are random too.
SIGNS = (TEXT, "77317", "7.73e", "7.7e")


def changed(rows: Any, at: Any, value: Any, dtype: Any = None) -> np.ndarray:
    """A copy of an array with another value at a place."""
    rows = np.array(rows, dtype=dtype or np.asarray(rows).dtype)
    rows[at] = value
    return rows


class Heard:
    """All that an action said, and how it ended. Other errors than those ``expected`` are not caught."""

    def __init__(self, action: Callable[[], Any], *expected: type[BaseException]) -> None:
        expected = expected or (Exception,)
        out, err, self.records = io.StringIO(), io.StringIO(), list[str]()
        self.result: Any = None
        self.error: BaseException | None = None
        handler, root = logging.Handler(), logging.getLogger()
        handler.emit = lambda record: self.records.append(f"{record.getMessage()} {record.exc_info}")
        level = root.level
        root.addHandler(handler)
        root.setLevel(1)
        try:
            with (
                warnings.catch_warnings(record=True) as self.caught,
                redirect_stdout(out),
                redirect_stderr(err),
            ):
                warnings.simplefilter("always")
                try:
                    self.result = action()
                except expected as error:
                    self.error = error
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
        self.printed, self.complained = out.getvalue(), err.getvalue()
        self.warned = [str(warning.message) for warning in self.caught]
        self.messages = [*self.warned, *self.records, self.printed, self.complained, *_chain(self.error)]
        trace = traceback.format_exception(self.error) if self.error else []
        self.everything = "\n".join([*self.messages, *trace])

    @property
    def refused(self) -> bool:
        """Whether the action ended with an error of its arguments."""
        return isinstance(self.error, (ValueError, TypeError))

    def secrets(self) -> list[str]:
        """What of the text, the number and the number of the row was said."""
        said = re.sub(r"line \d+, in ", "", " ".join(self.messages))  # of the command line's own traceback
        rows = [str(row) for row in (ROW, ROW + 1, ROW % 100 + 1) if f" {row}" in said or f"[{row}]" in said]
        return [sign for sign in (*SIGNS, "7731") if sign in self.everything] + rows


def refused(action: Callable[[], Any], about: Any = "", kinds: Any = (ValueError, TypeError)) -> Heard:
    """What was said of an action that must end with such an error, and quote no secret."""
    heard = Heard(action)
    assert isinstance(heard.error, kinds) and not heard.secrets(), (about, heard.everything)
    return heard


def _chain(error: BaseException | None) -> Iterator[str]:
    """Texts of an error and of those that Python shows with it."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def marks_of(key: int) -> list[bytes]:
    """A key and its halves as they could be written: as numbers and as bytes, in both orders."""
    halves = [key & (2**64 - 1), key >> 64]
    texts = [form(number).encode() for number in (key, *halves) for form in (str, "{:x}".format)]
    return [*texts, *(half.to_bytes(8, order) for half in halves for order in ("little", "big"))]


def on_disk(folder: Path) -> dict[str, bytes]:
    """The bytes of all files in a folder, by their names, and the names themselves."""
    paths = sorted(folder.rglob("*"))
    names = "\n".join(str(path.relative_to(folder)) for path in paths)
    return {"names": names.encode()} | {str(path): path.read_bytes() for path in paths if path.is_file()}


#: Numbers that are multiples of this, up to a few thousands, may be there by chance.
_COARSE = 2.0**-16

#: Numbers in texts are compared if they are written with at least so many digits.
_DIGITS = 10

_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")

#: Counts are searched if all of an array have so many bits together.
_BITS = 18


class Needles:
    """Numbers that nothing may hold."""

    def __init__(self, arrays: Iterable[np.ndarray], n_rows: int) -> None:
        sums = [np.atleast_1d(np.asarray(array, np.float64)) for array in arrays]
        # The mean of a count may be any number, such as a share of 0.02.
        means = [np.where(_is_fine(array), array, 0.0) / n_rows for array in sums]
        arrays = [*sums, *means]
        entries = np.concatenate([array.ravel() for array in arrays])
        self.numbers = np.unique(entries[_is_fine(entries)])
        self._words = np.unique(np.concatenate(list(map(_words, arrays))))
        self._sequences = {
            array.astype(dtype).tobytes()
            for array in sums
            if np.log2(1 + np.abs(array)).sum() >= _BITS and not _is_fine(array.ravel()).any()
            for dtype in (">f8", "<f8", "<f4", "<i8", "<i4")
        }

    def in_bytes(self, data: bytes) -> list[str]:
        """What is found in bytes, as binary numbers of either order or as text."""
        found = []
        for offset in range(min(8, len(data))):
            words = np.frombuffer(data, "<u8", (len(data) - offset) // 8, offset)
            found += [f"word {word:x}" for word in np.intersect1d(words, self._words)]
        found += ["a sequence of counts" for sequence in self._sequences if sequence in data]
        for match in _NUMBER.finditer(data.decode("latin-1")):
            digits = match.group().lower().partition("e")[0].strip("+-").replace(".", "").lstrip("0")
            if len(digits) >= _DIGITS:
                value, off = float(match.group()), 10.0 ** (1 - len(digits))
                # A hash may hold an exponent that no number has.
                if np.isfinite(value) and (np.abs(self.numbers - value) <= off * abs(value)).any():
                    found.append(match.group())
        return found

    def in_object(self, value: Any) -> list[str]:
        """What is found in all that can be reached from an object, hidden attributes and closures too."""
        found = []
        for part in reachable(value):
            if isinstance(part, np.ndarray):
                if self._is_held(part):
                    found.append(f"an array of shape {part.shape}")
                if part.dtype.kind in "fiu" and self._is_sequence(part):
                    found.append(f"counts in an array of shape {part.shape}")
            elif isinstance(part, float) and part in self.numbers:
                found.append(repr(part))
            elif isinstance(part, (list, tuple)) and self._is_sequence(part):
                found.append(f"counts in a {type(part).__name__}")
            elif isinstance(part, (str, bytes)):
                found += self.in_bytes(part.encode() if isinstance(part, str) else part)
        return found

    def _is_held(self, part: np.ndarray) -> bool:
        if part.dtype in (np.float64, np.longdouble):
            return bool(np.isin(part, self.numbers).any())
        if part.dtype != np.float32:
            return False
        # A number in single precision is like another by chance, two next to each other are not.
        single = self.numbers.astype(np.float32)
        held = [np.isin(part.ravel(order), single) for order in "CF"]
        return any(bool((mask[1:] & mask[:-1]).any()) for mask in held)

    def _is_sequence(self, part: Any) -> bool:
        try:
            shape = np.shape(part)
        except ValueError:  # parts of different lengths, which are searched one by one
            return False
        if len(shape) == 0 or not all(isinstance(x, (int, float, np.number)) for x in np.ravel(part)):
            return False
        return np.ravel(np.asarray(part, ">f8")).tobytes() in self._sequences


def _is_fine(numbers: np.ndarray) -> np.ndarray:
    """Whether numbers have so many bits that no other number is equal by chance."""
    return np.isfinite(numbers) & (numbers % _COARSE != 0) & (np.abs(numbers) > 1e-12)


def _words(array: np.ndarray) -> np.ndarray:
    """Eight bytes each: numbers in double precision, and pairs of neighbours in single precision."""
    words = [array.ravel()[_is_fine(array.ravel())].astype(dtype).view("<u8") for dtype in ("<f8", ">f8")]
    for order in "CF":
        flat = array.ravel(order)
        pairs = [pair for pair in pairwise(flat) if _is_fine(np.array(pair)).all()]
        words += [np.array(pairs, dtype).reshape(-1, 2).view("<u8").ravel() for dtype in ("<f4", ">f4")]
    return np.concatenate(words)


def reachable(value: Any) -> Iterator[Any]:
    """All objects that an object leads to, itself included, but for classes, modules and what is global."""
    waiting, known = [value], {}
    while waiting:
        part = waiting.pop()
        if id(part) in known or isinstance(part, (type, types.ModuleType, types.BuiltinFunctionType)):
            continue
        known[id(part)] = part
        yield part
        if isinstance(part, np.ndarray):
            waiting += [part.base, *(part.ravel().tolist() if part.dtype == object else ())]
        elif isinstance(part, types.FunctionType):
            waiting += [part.__closure__, part.__defaults__, part.__kwdefaults__, part.__dict__]
        elif isinstance(part, functools.partial):
            waiting += [part.func, part.args, part.keywords]
        elif hasattr(part, "detach"):
            yield part.detach().cpu().numpy().copy()
        else:
            waiting += gc.get_referents(part)
            slots = [slot for kind in type(part).__mro__ for slot in getattr(kind, "__slots__", ())]
            waiting += [getattr(part, slot) for slot in slots if hasattr(part, slot)]
