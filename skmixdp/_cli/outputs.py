"""Write all files of a result, or none."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

from .._utils.documents import Section, as_page
from .._utils.files import target_of, written_whole
from ..privacy import PrivacyReport
from ..privacy.report import attack_section
from .arguments import Parser
from .messages import InputError

#: Writes the content of one file.
Writer = Callable[[BinaryIO], object]


def check_outputs(
    wanted: Mapping[str, Path | None], inputs: Sequence[Path | None], *, force: bool, ending: str = ""
) -> None:
    """Refuse outputs, by flag, that cannot or should not be written, before any budget is spent."""
    outputs = {flag: path for flag, path in wanted.items() if path is not None}
    for flag, path in outputs.items():
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"{flag} {path}: the folder {folder} does not exist; create it first.")
        try:
            target = target_of(path)
            folder = target.parent if path.is_symlink() else folder
        except OSError as error:
            raise InputError(
                f"{flag} {path} cannot be used ({error.strerror}); choose another name."
            ) from error
        except ValueError as error:
            raise InputError(f"{flag} {error}") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{flag} {path}: the folder {folder} is not writable; choose another one.")
        if any(_is_same_file(path, source) for source in inputs if source is not None):
            raise InputError(f"{flag} {path} is also an input file; choose another name.")
        if path.exists() and not force:
            raise InputError(f"{flag} {path} exists; choose another name, or pass --force to replace it.")
    for (flag, path), (second, same) in combinations(outputs.items(), 2):
        if _is_same_file(path, same):
            raise InputError(f"{flag} and {second} are both {same}; choose two names.")
    for flag, path in outputs.items():
        endings = (".json", ".html") if flag == "--report" else (ending,)
        if not path.name.lower().endswith(endings):
            raise InputError(f"{flag} {path} must end in {' or '.join(endings)}, which is its form.")


def add_report_to(parser: Parser, what: str) -> None:
    """Declare the output of a command that prints ``what`` it released."""
    texts = {
        "--report FILE": f"{what} and privacy report (.json or .html)",
        "--force": "replace a report that exists",
        "--quiet": "print nothing; needs --report",
    }
    parser.add("output", texts)
    parser.set_defaults(needs=[("quiet", "report")])


def print_and_write(
    args: argparse.Namespace,
    result: object,
    report: PrivacyReport,
    facts: dict[str, Any],
    title: str,
    sections: Sequence[Section],
) -> None:
    """Print a result and its guarantee, and write ``facts`` as JSON, or ``sections`` as HTML."""
    if args.report is not None:
        if args.report.suffix.lower() == ".json":
            text = f"{json.dumps(facts, indent=2)}\n"
        else:
            attack = attack_section(report.attack_success, report._attack)
            guarantee = [section._replace(title="Guarantee") for section in report._sections()]
            text = as_page(title, report.no_guarantee, [attack, *sections, *guarantee])
        write_together({args.report: lambda file: file.write(text.encode())})
    if not args.quiet:
        sys.stdout.write(f"{result}\n{report}\n")


def write_together(outputs: Mapping[Path, Writer]) -> None:
    """Write all files, or none if one cannot be written."""
    first, *others = outputs
    try:
        with ExitStack() as stack:
            # The stack moves files into place from the last opened to the first.
            files = {path: stack.enter_context(written_whole(path)) for path in [*others, first]}
            for path, write in outputs.items():
                write(files[path])
                files[path].flush()
            # Before one is replaced, so that a model never stands next to the report of another run.
            for path in others:
                target_of(path).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{' and '.join(map(str, outputs))} could not be written ({error.strerror or error}); fix that "
            "and run again."
        ) from error


def _is_same_file(path: Path, second: Path) -> bool:
    return path.resolve() == second.resolve() or (path.exists() and second.exists() and path.samefile(second))
