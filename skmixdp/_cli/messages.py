"""Messages of the command line: one line per error and per warning."""

import argparse
import ast
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from .._utils.process import is_own
from .._utils.validation import COUNT, Number, printable, whole_from
from ..privacy import BudgetExceededError, NotPrivateWarning

TRUST = (
    "A model file that does not end in .safetensors is a Python pickle. Opening a pickle can run\n"
    "any code that its author put there: load only models you trust."
)

#: Ending of help texts that docs/command_line.md explains.
EXIT_CODES = (
    "exit codes: 0 done, 2 bad input (one line says what to fix), 1 unexpected error,\n130 interrupted."
)


class InputError(ValueError):
    """An error that the user can fix, described in one sentence."""


class Parser(argparse.ArgumentParser):
    """A parser that refuses abbreviations and reports a bad argument in one line."""

    def __init__(self, **options: Any) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"allow_abbrev": False, "formatter_class": layout, **options})

    def flags(self) -> list[str]:
        """All flags of the command."""
        return list(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        self.exit(
            2, f"{self.prog.removeprefix('python -m ')}: {one_line(message)}; see {self.prog} --help.\n"
        )


@contextmanager
def warnings_as_lines(command: str, flags: Mapping[str, str]) -> Iterator[None]:
    """Show each distinct warning once, as a line on stderr, with the names of flags."""
    seen: set[str] = set()

    def show(message: Warning | str, *args: object, **kwargs: Any) -> None:
        text = in_flags(one_line(message), flags)
        if text not in seen:
            seen.add(text)
            sys.stderr.write(f"skmixdp {command}: warning: {text}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


@contextmanager
def library_errors(flags: Mapping[str, str], *more: type[Exception]) -> Iterator[None]:
    """Turn errors of the library, and ``more`` of them, into input errors that name flags.

    The warning that a seed is not private is left out, since the flag is warned of.
    """
    # ImportError: a package is not installed. OSError: the file of a ledger.
    expected: tuple[type[Exception], ...] = (ValueError, TypeError, ImportError, OSError, BudgetExceededError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            yield
    except (*expected, *more) as error:
        if isinstance(error, ValueError | TypeError) and not is_own(error):
            raise
        raise InputError(in_flags(error, flags)) from error


def flags_of(*names: str, **others: str) -> dict[str, str]:
    """Flags of the parameters that messages name: ``--n-steps`` for ``n_steps``, and others as given."""
    return {name: f"--{name.replace('_', '-')}" for name in names} | others


def one_line(message: object) -> str:
    """The message in one line: white space as single spaces, and control characters as escapes."""
    return printable(" ".join(str(message).split()))


def in_flags(message: object, flags: Mapping[str, str]) -> str:
    """A message of the library with flags instead of ``name=value`` and names of parameters."""
    text = str(message)
    if "columns" in flags:
        text = re.sub(r"\bcolumns=(\{[^{}]*\})", _as_declared, text)
        text = re.sub(r"\bcolumns\[('[^']*')\]=", r"--encode: the column \1 with ", text)
    text = re.sub(r"\brows=RowMapping\(([^()]*)\)", r"\1", text)
    for name, flag in flags.items():
        text = re.sub(rf"(?<![\w-]){name}=(['\"]?)([^\s,;'\"]+)\1", rf"{flag} \2", text)
        if "_" in name:
            text = re.sub(rf"(?<![\w-]){name}(?![\w=])", flag, text)
    return text


def _as_declared(match: re.Match[str]) -> str:
    """What a file for ``--encode`` must hold instead of the parameter ``columns`` of an encoder."""
    try:
        columns = ast.literal_eval(match[1])
        kinds = {str(name): "..." if kind is ... else kind for name, kind in columns.items()}
        return f"{json.dumps({'kinds': kinds}, ensure_ascii=False)} in a file for --encode"
    except (ValueError, SyntaxError, TypeError, AttributeError):
        return "kinds in a file for --encode"


def number_type(rule: Number) -> Callable[[str], Any]:
    """A type for argparse: numbers that a rule admits."""

    def parse(text: str) -> int | float:
        try:
            value = int(text) if rule.whole else float(text)
        except ValueError:
            value = math.nan
        if not rule.admits(value):
            raise argparse.ArgumentTypeError(f"{text!r} must be {rule.text}")
        return value

    return parse


def bounds(text: str) -> tuple[float, float]:
    """A type for argparse: two numbers, the lower one first."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = math.nan
    if not -1e100 <= low < high <= 1e100:
        raise argparse.ArgumentTypeError(f"{text!r} must be two numbers LOW,HIGH, the lower one first")
    return low, high


def path_named(text: str) -> Path:
    """A type for argparse: paths."""
    if "\0" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} must not hold a null character, which no file name may have"
        )
    return Path(text)


count, count_or_zero = number_type(COUNT), number_type(whole_from(0))
