"""Messages of the command line: one line per error and per warning."""

import ast
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .._utils.process import is_own
from .._utils.validation import printable
from ..exceptions import BudgetExceededError

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


def is_of_input(error: Exception) -> bool:
    """Whether an error tells of bad input, in a sentence of this package or of the system."""
    if isinstance(error, ValueError | TypeError | RuntimeError):  # the last is of a checkpoint
        return is_own(error)
    if isinstance(error, OSError):  # of the file of a ledger; those of readers have no number, and may quote
        return error.errno is not None or is_own(error)
    return isinstance(error, ImportError | BudgetExceededError)  # the first: a package is not installed


def one_line(message: object) -> str:
    """The message in one line: white space as single spaces, and control characters as escapes."""
    return printable(" ".join(str(message).split()))


def in_flags(message: object, flags: Mapping[str, str]) -> str:
    """A message of the library with flags instead of ``name=value`` and names of parameters."""
    text = str(message)
    if "columns" in flags:
        text = re.sub(r"\bcolumns=(\{[^{}]*\})", _in_encode_file, text)
        text = re.sub(r"\bcolumns\[('[^']*')\]=", r"--encode: the column \1 with ", text)
    for name, flag in flags.items():
        text = re.sub(rf"\bpass {name}=None\b", f"leave {flag} out", text)
        value = r"(?:'([^']*)'|([^\s,;'\"]+))"
        text = re.sub(rf"(?<![\w-]){name}={value}", rf"{flag} \1\2", text)
        if "_" in name or name == "X":  # no word of a sentence
            text = re.sub(rf"(?<![\w-]){name}(?![\w=])", flag, text)
    return text


def _in_encode_file(match: re.Match[str]) -> str:
    """What a file for ``--encode`` must hold instead of the parameter ``columns`` of an encoder."""
    try:
        columns = ast.literal_eval(match[1])
        kinds = {str(name): "..." if kind is ... else kind for name, kind in columns.items()}
        return f"{json.dumps({'kinds': kinds}, ensure_ascii=False)} in a file for --encode"
    except (ValueError, SyntaxError, TypeError, AttributeError):
        return "kinds in a file for --encode"
