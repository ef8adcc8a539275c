"""The limits of a case, what it may raise and say, and how cases are counted."""

import html
import io
import os
import re
import signal
import sys
import tempfile
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis.stateful import run_state_machine_as_test

#: Seconds of processor time that a case may take. Slow machines and busy ones must pass.
CPU_SECONDS = 20
#: What documented errors of arguments are.
BAD_INPUT = (ValueError, TypeError)

#: A private number, which no message may quote. Its digits occur nowhere else.
SECRET, SECRET_SIGNS = 77317731.5, ("77317", "7.73", "7.7e", "SECRET-7731")
SECRET_TEXT = "SECRET-7731"


class HangError(BaseException):
    """A case took too long. No code under test may catch it."""


class PromiseError(AssertionError):
    """A broken promise."""


@dataclass
class Tally:
    """How many cases a target tried, and how they ended."""

    cases: int = 0
    ended: Counter[str] = field(default_factory=Counter)


@dataclass
class Case:
    """One case that is being tried. ``folder`` is the only one in which it may write."""

    folder: Path | None
    unpickled: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


_running: list[Case] = []
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _audit(event: str, args: tuple[Any, ...]) -> None:
    """Note what a running case unpickles, and the files that it opens for writing."""
    if not _running:
        return
    case = _running[-1]
    if event == "pickle.find_class":
        case.unpickled.append(".".join(map(str, args)))
    elif event == "open" and isinstance(args[0], (str, bytes)):
        path, mode, flags = os.fsdecode(args[0]), args[1], args[2]
        writes = any(sign in mode for sign in "wax+") if isinstance(mode, str) else flags & _WRITING
        if writes and not any(part in path for part in ("__pycache__", ".hypothesis")) and path != os.devnull:
            case.written.append(os.path.abspath(path))  # noqa: PTH100 - resolve() would open links


tempfile.gettempdir()  # writes a file to find out
sys.addaudithook(_audit)


def _late(*_: Any) -> None:
    raise HangError


@contextmanager
def case(tally: Tally, folder: Path | None = None, *, pickles: bool = False) -> Iterator[Case]:
    """Count a case. It must end in time, write nowhere but in ``folder``, and unpickle nothing."""
    this = Case(folder)
    former = signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    _running.append(this)
    try:
        yield this
        tally.cases += 1
    except HangError:
        raise PromiseError(f"the case took more than {CPU_SECONDS} s") from None
    finally:
        _running.remove(this)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
    if this.unpickled and not pickles:
        raise PromiseError(f"a pickle was opened: {this.unpickled[:5]}")
    allowed = None if folder is None else f"{os.path.realpath(folder)}{os.sep}"
    outside = [
        path for path in this.written if allowed is None or not os.path.realpath(path).startswith(allowed)
    ]
    if outside:
        raise PromiseError(f"files outside of the folder were opened for writing: {outside[:5]}")


@dataclass
class Ending:
    """How an action ended: its result or its error, and all that it said."""

    result: Any
    error: BaseException | None
    warned: list[str]
    printed: str
    complained: str

    @property
    def message(self) -> str:
        return str(self.error)

    @property
    def said(self) -> str:
        return "\n".join([*self.warned, self.printed, self.complained, *chain(self.error)])


def chain(error: BaseException | None) -> Iterator[str]:
    """Texts of an error and of those that Python shows with it."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def attempt(
    tally: Tally, action: Callable[[], Any], *allowed: type[BaseException], secrets: Sequence[str] = ()
) -> Ending:
    """Do something that may raise ``allowed`` errors, and look through all that it says."""
    printed, complained = io.StringIO(), io.StringIO()
    result, error = None, None
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(printed),
        redirect_stderr(complained),
    ):
        warnings.simplefilter("always")
        try:
            result = action()
        except allowed as raised:
            error = raised
    end = Ending(result, error, [str(w.message) for w in caught], printed.getvalue(), complained.getvalue())
    tally.ended["done" if error is None else type(error).__name__] += 1
    for warning in caught:
        if not issubclass(warning.category, UserWarning):
            raise PromiseError(
                f"{warning.category.__name__}: {warning.message} ({warning.filename}:{warning.lineno})"
            ) from error
    found = [secret for secret in secrets if secret in end.said]
    if found:
        raise PromiseError(f"private values {found} were said: {end.said[:2000]}") from error
    return end


def check_message(text: str, names: Sequence[str] = ()) -> None:
    """An error is one printable line of modest length that names what was wrong."""
    if controls := [c for c in text if unicodedata.category(c) in ("Cc", "Cs")]:
        raise PromiseError(f"the message has control characters {controls[:3]}: {text[:500]!r}")
    if not 10 < len(text) <= 2000:
        raise PromiseError(f"the message has {len(text)} characters: {text[:300]!r}")
    if names and not any(re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", text) for name in names):
        raise PromiseError(f"the message names none of {list(names)[:10]}: {text!r}")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}


def check_html(text: str, hostile: Sequence[str], *, scripts: int = 0) -> None:
    """HTML shows hostile names as text: no script, image or handler of theirs gets in."""
    found = _Tags()
    found.feed(text)
    found.close()
    handlers = [name for name in found.attributes if name.startswith("on")]
    if found.tags["script"] > scripts or found.tags["img"] or (handlers and not scripts):
        raise PromiseError(f"the page has tags {dict(found.tags)} and handlers {handlers}")
    for name in hostile:
        if "<" in name[:-1] and name in text:
            raise PromiseError(
                f"the page holds {name[:80]!r} without escapes, not {html.escape(name)[:80]!r}"
            )


def finite(name: str, *arrays: Any) -> None:
    """Results hold numbers, never NaN or infinity."""
    for array in arrays:
        if not np.all(np.isfinite(np.asarray(array, dtype=np.float64))):
            raise PromiseError(f"{name} holds NaN or infinity")


# -- targets --------------------------------------------------------------------------------


class Draw:
    """Choices of one case, by hypothesis: small numbers and early entries are the simple ones."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def whole(self, low: int, high: int) -> int:
        return int(self._data.draw(st.integers(low, high)))

    def chance(self, one_in: int) -> bool:
        """True in one of so many cases."""
        return self.whole(0, one_in - 1) == one_in - 1

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.whole(0, 2**32 - 1))

    def text(self, **kwargs: Any) -> str:
        return str(self._data.draw(st.text(**kwargs)))

    def draw(self, strategy: Any) -> Any:
        return self._data.draw(strategy)


@dataclass(frozen=True)
class Target:
    """Something to fuzz.

    Attributes
    ----------
    name : str
        Its name on the command line.
    share : float
        Its share of all cases, in percent.
    check : callable
        ``(draw, tally)``: draws and checks one case. None for state machines.
    machine : callable or None
        ``tally -> class`` of a state machine of hypothesis.
    fits : bool
        Whether nearly every case is a fit.
    """

    name: str
    share: float
    check: Callable[[Draw, Tally], None] | None = None
    machine: Callable[[Tally], type] | None = None
    fits: bool = False


#: Cases in one run of hypothesis. More would fill its memory of what was tried.
CHUNK = 500


def run(
    target: Target, n_cases: int, first_seed: int, *, shrink: bool = True, most: int = 5
) -> tuple[Tally, list[str]]:
    """Try a target on at least ``n_cases`` cases.

    Returns
    -------
    tally : Tally
        The cases that were tried.
    failures : list of str
        The reports of up to ``most`` failures, with the seeds that repeat them.
    """
    tally, failures, number, idle = Tally(), [], first_seed, 0
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    while tally.cases < n_cases and len(failures) < most:
        before, left = tally.cases, n_cases - tally.cases
        options = settings(
            max_examples=max(10, min(CHUNK, left)),
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            print_blob=False,
            stateful_step_count=12,
        )
        try:
            with redirect_stdout(io.StringIO()):  # hypothesis prints what the error says too
                _once(target, tally, options, number)
        except Exception as error:
            failures.append(_report(target, number, error))
        number, idle = number + 1, idle + 1 if tally.cases == before else 0
        if idle == 20:
            failures.append(f"{target.name} tries no case with --seed {number}")
            break
    return tally, failures


def _once(target: Target, tally: Tally, options: settings, number: int) -> None:
    if target.machine is not None:
        machine = seed(number)(target.machine(tally))
        run_state_machine_as_test(machine, settings=options)
        return
    check = target.check
    assert check is not None

    @seed(number)
    @options
    @given(st.data())
    def test(data: Any) -> None:
        check(Draw(data), tally)

    test()


def _report(target: Target, number: int, error: BaseException) -> str:
    said = "".join(traceback.format_exception(error))[-8000:]
    return f"{target.name}, --seed {number}: {type(error).__name__}\n{said}"


def describe(**facts: Any) -> None:
    """Tell hypothesis about a case, for the report of a failure."""
    for name, value in facts.items():
        note(f"{name} = {value!r:.1500}")


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """An empty folder, which is the current one for the moment."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)
