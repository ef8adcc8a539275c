"""The command line: ``skmixdp`` and a command, or ``python -m skmixdp``."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from .._files.text import FileError
from .._utils.process import LEFT_OUT, no_bars, place_of
from .._utils.validation import suggestion
from .._version import __version__
from . import evaluate, export, extract, fit, infer, predict, report
from .arguments import Parser, check_flags
from .messages import InputError, in_flags, is_of_input, one_line, warnings_as_lines

_DESCRIPTION = """\
Turn images into feature rows, and train, use and inspect differentially private linear heads on
files of rows."""


def build_parser() -> Parser:
    """The parser with all commands; each puts its function into ``args.run``."""
    script = Path(sys.argv[0]).stem == "skmixdp"
    parser = Parser(prog="skmixdp" if script else "python -m skmixdp", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"skmixdp {__version__}")
    # Values of flags that a command lacks.
    names = ("weight_column", "exposure_column", "public", "public_labels", "unlabeled", "scale", "encode")
    parser.set_defaults(quiet=False, needs=(), **dict.fromkeys(names))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (extract, fit, predict, evaluate, infer, report, export):
        name = command.__name__.rpartition(".")[2]
        command_parser = commands.add_parser(name, help=command.SUMMARY, description=command.DESCRIPTION)
        command_parser.set_defaults(run=command.run, parser=command_parser)
        command.add_to(command_parser)
        command_parser.shorten_usage()
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 2 for bad input, 1 for other errors, or 130 if interrupted."""
    args, unknown = build_parser().parse_known_args(argv)
    if unknown:
        close = next(filter(None, (suggestion(word, args.parser.flags()) for word in unknown)), None)
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}{f', {close}?' if close else ''}")
    flags = args.parser.parameters
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by ctrl_c_at_start, which has ended
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        quiet = no_bars() if args.quiet else nullcontext()
        with quiet, warnings_as_lines(args.command, flags):
            check_flags(args, flags)
            args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout again when it ends, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as error:
        notes = vars(error).pop("__notes__", [])  # what was spent
        sys.stderr.write(" ".join([f"skmixdp {args.command}: interrupted.", *notes]) + "\n")
        return 130
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of a library in Rust
        if isinstance(error, Exception) and is_of_input(error):
            text = error if isinstance(error, InputError | FileError) else in_flags(error, flags)
            sys.stderr.write(f"skmixdp {args.command}: {one_line(text)}\n")
            return 2
        sys.stderr.write(
            f"skmixdp {args.command}: {place_of(error)} met {LEFT_OUT}; please report that line.\n"
        )
        return 1
    return 0
