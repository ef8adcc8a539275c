"""How many cases a test tries, what a case may do, and what it may raise and say."""

import faulthandler
import html
import math
import os
import re
import signal
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.secrets import SIGNS, Heard

#: Seconds of processor time that a case may take, and seconds after which it ends the process.
CPU_SECONDS, PATIENCE = 20, 900
#: What documented errors of arguments are, and of files.
BAD_INPUT = (ValueError, TypeError)
BAD_FILE = (*BAD_INPUT, OSError)

#: Cases in one run of hypothesis. More would fill its memory of what was tried.
CHUNK = 500

pick = st.sampled_from
seeds = st.integers(0, 2**32 - 1)


def one_in(number: int) -> st.SearchStrategy[bool]:
    """True in one of so many cases."""
    return st.integers(1, number).map(lambda drawn: drawn == number)


def cases(share: float) -> int:
    """How many cases are this share of all, in percent; a test of average size tries a 15th."""
    return math.ceil(settings.default.max_examples * 15 * share / 100)


def fuzzed(share: float) -> Callable[[Any], Any]:
    """Mark a test that tries this share of all cases, in parts."""
    n_parts = math.ceil(cases(share) / CHUNK)

    def marked(test: Any) -> Any:
        chosen = settings(max_examples=math.ceil(cases(share) / n_parts), suppress_health_check=HealthCheck)
        parts = pytest.mark.parametrize("part", range(n_parts), indirect=True)
        return pytest.mark.slow(pytest.mark.usefixtures("part")(parts(chosen(test))))

    return marked


class HangError(BaseException):
    """A case took too long. No code under test may catch it."""


_running: list[tuple[list[str], list[str]]] = []
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Note what a running case unpickles, and the files that it opens for writing."""
    if not _running:
        return
    unpickled, written = _running[-1]
    if event == "pickle.find_class":
        unpickled.append(".".join(map(str, args)))
    elif event == "open" and isinstance(args[0], (str, bytes)):
        path, mode, flags = os.fsdecode(args[0]), args[1], args[2]
        writes = any(sign in mode for sign in "wax+") if isinstance(mode, str) else flags & _WRITING
        writes = writes and not Path(path).is_dir()  # a temporary file without a name is opened by its folder
        if writes and not any(part in path for part in ("__pycache__", ".hypothesis")) and path != os.devnull:
            written.append(os.path.abspath(path))  # noqa: PTH100 - resolve() would open links


tempfile.gettempdir()  # writes a file to find out
sys.addaudithook(_audit)


def _late(*_: Any) -> None:
    raise HangError


@contextmanager
def limits(*, pickles: bool = False) -> Iterator[Path]:
    """A case: it must end in time, write nowhere but in this empty folder, and unpickle nothing."""
    before, notes = Path.cwd(), (list[str](), list[str]())
    former = signal.signal(signal.SIGPROF, _late)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        os.chdir(name)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        _running.append(notes)
        try:
            yield Path(name)
        except HangError:
            raise AssertionError(f"the case took more than {CPU_SECONDS} s") from None
        finally:
            _running.remove(notes)
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGPROF, former)
            os.chdir(before)
        unpickled, written = notes
        assert pickles or not unpickled, f"a pickle was opened: {unpickled[:5]}"
        allowed = f"{os.path.realpath(name)}{os.sep}"
        outside = [path for path in written if not os.path.realpath(path).startswith(allowed)]
        assert not outside, f"files outside of the folder were opened for writing: {outside[:5]}"


def attempt(action: Callable[[], Any], *expected: type[BaseException], secret: bool = False) -> Heard:
    """Do something that may raise ``expected`` errors, and look through all that it says."""
    heard = Heard(action, *expected)
    for warning in heard.caught:
        assert issubclass(warning.category, UserWarning), (
            f"{warning.category.__name__}: {warning.message} ({warning.filename}:{warning.lineno})"
        )
    if secret:
        found = [sign for sign in SIGNS if sign in "\n".join(heard.messages)]
        assert not found, f"private values {found} were said: {heard.everything[:2000]}"
    return heard


def check_message(text: str, names: Sequence[str] = ()) -> None:
    """An error is one printable line of modest length that names what was wrong."""
    controls = [c for c in text if unicodedata.category(c) in ("Cc", "Cs")]
    assert not controls, f"the message has control characters {controls[:3]}: {text[:500]!r}"
    assert 10 < len(text) <= 2000, f"the message has {len(text)} characters: {text[:300]!r}"
    named = [name for name in names if re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", text)]
    assert named or not names, f"the message names none of {list(names)[:10]}: {text!r}"


class _Tags(HTMLParser):
    """Counts tags and lists attributes, and the texts of headings and cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self.inside = tag in ("td", "h2")
        self.cells += [""] * self.inside

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "h2")


def cells_of(page: str) -> list[str]:
    """The texts of headings and cells of a page."""
    return _Tags(page).cells


def check_html(page: str, hostile: Sequence[str], *, scripts: int = 0) -> None:
    """HTML shows hostile names as text: no script, image or handler of theirs gets in."""
    found = _Tags(page)
    handlers = [name for name in found.attributes if name.startswith("on")]
    assert found.tags["script"] <= scripts and not found.tags["img"] and (scripts or not handlers), (
        f"the page has tags {dict(found.tags)} and handlers {handlers}"
    )
    for name in hostile:
        assert "<" not in name[:-1] or name not in page, (
            f"the page holds {name[:80]!r} without escapes, not {html.escape(name)[:80]!r}"
        )


def check_text(text: str, n_lines: int | None = None) -> None:
    """Printed text has no control characters, and as many lines as it should."""
    controls = [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cs", "Cf")]
    assert not controls, f"the text has the control characters {controls[:5]!a}: {text[:300]!a}"
    lines = len(text.splitlines())
    assert n_lines in (None, lines), f"the text has {lines} lines and not {n_lines}: {text!a}"


def finite(name: str, *arrays: Any) -> None:
    """Results hold numbers, never NaN or infinity."""
    for array in arrays:
        assert np.all(np.isfinite(np.asarray(array, dtype=np.float64))), f"{name} holds NaN or infinity"
