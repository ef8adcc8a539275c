"""How the command line speaks: one line per error and per warning."""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .._validation import COUNT, Number, whole_from

TRUST = (
    "A model file is a Python pickle, and opening a pickle can run any code that its author put "
    "there: load only models you trust."
)


class InputError(ValueError):
    """Something that the person at the command line can fix, in one sentence."""


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations and reports a bad argument in one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        self.exit(2, f"{self.prog.removeprefix('python -m ')}: {message}; see {self.prog} --help.\n")


@contextmanager
def warnings_as_lines(command: str) -> Iterator[None]:
    """Show each distinct warning once, as a line on stderr."""
    seen: set[str] = set()

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        text = one_line(message)
        if text not in seen:
            seen.add(text)
            sys.stderr.write(f"skmixdp {command}: warning: {text}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def one_line(message: object) -> str:
    """The message with all white space, line breaks among it, as single spaces."""
    return " ".join(str(message).split())


def number_type(rule: Number) -> Callable[[str], Any]:
    """A type for argparse: numbers that a rule of parameter checks admits."""

    def parse(text: str) -> int | float:
        try:
            value = int(text) if rule.whole else float(text)
        except ValueError:
            value = math.nan
        if not rule.admits(value):
            raise argparse.ArgumentTypeError(f"{text!r} must be {rule.text}")
        return value

    return parse


count, count_or_zero = number_type(COUNT), number_type(whole_from(0))
