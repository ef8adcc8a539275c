"""Flags of the commands. Those of the library's parameters follow from its tables and docstrings."""

import argparse
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .._utils.validation import COUNT, POSITIVE, PROBABILITY, Allowed, Kind, Number, either, whole_from
from ..privacy import LedgerDataset, PrivacyLedger
from ..privacy.ledger._account import PURPOSE
from .messages import EXIT_CODES, InputError, in_flags, one_line

#: Allowed values of parameters that no table of a class lists.
_RULES: Mapping[str, tuple[Allowed, ...]] = {
    **dict.fromkeys(("epsilon", "noise_multiplier"), (POSITIVE,)),
    **dict.fromkeys(("delta", "confidence"), (PROBABILITY,)),
    "n_steps": (COUNT,),
    "batch_size": ("auto", COUNT),
    "max_sample_weight": ("auto", POSITIVE),
    **dict.fromkeys(("n_workers", "random_state"), (whole_from(0),)),
}
#: Length of a help text from a docstring, which ends with a sentence.
_LONGEST_HELP = 170

#: Parameters of rows, of their encoder and of the form of their files, which no estimator has.
_OF_FILES = {"X", "columns", "separator", "decimal", "encoding"}
#: Flags of parameters that messages name, and whose values do not reach the library as they are.
_NAMED = {
    "X": "--private",
    "X_pub": "--public",
    "X_unlabeled": "--unlabeled",
    "columns": "--encode",
    "target_scale and target_center": "--target-bounds",
    "target_scale": "--target-bounds",
    "sample_weight": "--weight-column",
    "sample_weight_pub": "--weight-column",
    "exposure": "--exposure-column",
    "exposure_pub": "--exposure-column",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("classes", "scale", "reference", "by", "by_values", "target_bounds", "class_weight"),
            *("separator", "decimal", "encoding"),
        )
    },
}
#: Flags that need another one, and those that another one excludes.
_NEEDS = {
    "ledger": "dataset",
    "dataset": "ledger",
    "purpose": "ledger",
    "ledger_epsilon": "ledger",
    "ledger_delta": "ledger_epsilon",
    "checkpoint": "ledger",
    "by": "by_values",
    "by_values": "by",
    "public_labels": "public",
    "hold_out_public": "public",
    "reference": "encode",
}
_EXCLUDES = (
    ("regression", "counts", "labels are of one kind"),
    ("json", "html", "a report has one form"),
    *(("checkpoint", name, "the fit could not be repeated") for name in ("hold_out_public", "random_state")),
)


class Parser(argparse.ArgumentParser):
    """A parser that refuses abbreviations and reports a bad argument in one line.

    ``passed`` holds the flags of the library's parameters whose values reach it as they are.
    """

    def __init__(self, **options: Any) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(
            **{"epilog": EXIT_CODES, "allow_abbrev": False, "formatter_class": layout, **options}
        )
        self.passed: dict[str, str] = {}
        self._titled: dict[str, Any] = {}

    @property
    def parameters(self) -> dict[str, str]:
        """The flags of all parameters that messages name."""
        flags = self.flags()
        return {name: flag for name, flag in _NAMED.items() if flag in flags} | self.passed

    def flags(self) -> dict[str, str]:
        """All flags of the command, and the attributes of arguments with their values."""
        actions = self._option_string_actions
        return {flag: action.dest for flag, action in actions.items() if flag.startswith("--")}

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        self.exit(
            2, f"{self.prog.removeprefix('python -m ')}: {one_line(message)}; see {self.prog} --help.\n"
        )

    def shorten_usage(self) -> None:
        """Begin the help with the command and what it needs."""
        needed = [action for action in self._actions if action.required]
        words = [" ".join([*action.option_strings[:1], str(action.metavar)]) for action in needed]
        self.usage = " ".join([self.prog, "[FLAGS]", *words])

    def add(
        self, title: str, texts: Mapping[str, str], required: Sequence[str] = (), about: str | None = None
    ) -> None:
        """Declare flags such as ``"--out FILE"``, whose second word tells the type, with their help."""
        group = self._group(title, about)
        for words, text in texts.items():
            flag, _, metavar = words.partition(" ")
            options: dict[str, Any] = {"help": text}
            if not metavar and flag.startswith("--"):
                options["action"] = "store_true"
            else:
                choices = tuple(metavar[1:-1].split(",")) if metavar.startswith("{") else ()
                kind = _TYPES.get((metavar or flag).partition(".")[0], _reader(choices))
                options |= {"metavar": metavar or flag, "type": kind}
            if flag in required:
                options["required"] = True
            group.add_argument(flag if flag.startswith("--") else flag.lower(), **options)

    def add_parameters(self, title: str, owner: Any, **flags: str) -> None:
        """Declare parameters of a class or function, each with its flag, whose help may follow."""
        facts, signature = _documented(owner), inspect.signature(owner).parameters
        names = {name: flag.partition(" ") for name, flag in flags.items()}
        self.passed |= {name: flag for name, (flag, _, _) in names.items()}
        for name, (flag, _, own) in names.items():
            kind, text = facts.get(name, ("", ""))
            rules = _rules_of(owner, name, kind)
            default = signature[name].default
            text = own or _help_of(text, self.parameters)
            if default is not None and default is not inspect.Parameter.empty:
                text += f" (default: {default})"
            is_folder = kind.startswith("path")
            self._group(title).add_argument(
                flag,
                dest=name,
                default=argparse.SUPPRESS,
                help=text,
                type=path_named if is_folder else _reader(rules),
                metavar="FOLDER" if is_folder else _metavar(rules),
                required=default is inspect.Parameter.empty,
            )

    def _group(self, title: str, about: str | None = None) -> Any:
        if title not in self._titled:
            text = None if about is None else textwrap.fill(about, 78, subsequent_indent="  ")
            self._titled[title] = self.add_argument_group(title, text)
        return self._titled[title]


def _documented(owner: Any) -> dict[str, tuple[str, str]]:
    """The type and the description of each parameter in a docstring."""
    _, _, text = inspect.cleandoc(owner.__doc__ or "").partition("Parameters\n----------\n")
    text = re.split(r"\n\w+\n----", text)[0]
    entries = re.findall(r"^(\w[\w, ]*?) : (.*)\n((?:    .*\n?)+)", text, flags=re.MULTILINE)
    return {name: (kind, about) for names, kind, about in entries for name in names.split(", ")}


def _help_of(text: str, flags: Mapping[str, str]) -> str:
    """The first sentences of a description, without markup, with flags instead of parameters."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?([^`<]+?)(?: <[^`]*>)?`", r"\1", " ".join(text.split()))
    text = text.replace("``", "").replace('"', "").replace("%", "%%").replace("None leaves", "none leaves")
    text = re.sub(r"\bIf None, ", "Without it, ", text.removeprefix("Whether to "))
    first, *others = re.split(r"(?<=\.) (?=\S)", text)
    for sentence in others:
        if len(first) + len(sentence) > _LONGEST_HELP:
            break
        first += f" {sentence}"
    return in_flags(first[:1].lower() + first[1:].rstrip("."), flags)


def _rules_of(owner: Any, name: str, kind: str) -> tuple[Allowed, ...]:
    """What a parameter may be: by rules here, the names of algorithms, or the type in its docstring."""
    if name == "algorithm":
        return tuple(owner._algorithms)
    listed = kind[1 : kind.index("}")] if kind.startswith("{") else ""
    return _RULES.get(name, tuple(re.findall(r'"([^"]+)"', listed)))


def _metavar(rules: Sequence[Allowed]) -> str:
    if not rules:
        return "NAME"
    numbers = [rule for rule in rules if isinstance(rule, Number)]
    if numbers:
        return "N" if numbers[0].whole else "NUMBER"
    return f"{{{','.join(map(str, rules))}}}"


def _reader(rules: Sequence[Allowed]) -> Callable[[str], Any]:
    """A type for argparse: values that one of the rules admits, or any text without rules."""

    def read(text: str) -> Any:
        for rule in rules:
            value: Any = text
            if isinstance(rule, Number):
                try:
                    value = int(text) if rule.whole else float(text)
                except ValueError:
                    continue
            if rule.admits(value) if isinstance(rule, Number | Kind) else rule == text:
                return value
        if rules:
            raise argparse.ArgumentTypeError(f"{text!r} must be {either(tuple(rules))}")
        return text

    return read


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


#: Types by the word after a flag.
_TYPES: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("FILE", "FOLDER", "MODEL", "ROWS", "IMAGES"), path_named),
    "N": _reader((COUNT,)),
    "EPSILON": _reader((POSITIVE,)),
    "DELTA": _reader((PROBABILITY,)),
    "LOW,HIGH": bounds,
    "TEXT": _reader((PURPOSE,)),
}


def add_terms_to(parser: Parser, owner: Any, **flags: str) -> None:
    """Declare the budget of ``owner`` with further ``flags``, and the ledger."""
    seed = "--seed make the run reproducible and NOT private: only for tests and demos"
    delta = "--delta well below 1 / private rows"
    common = {"epsilon": "--epsilon", "delta": delta, "neighboring": "--neighboring"}
    parser.add_parameters("budget", owner, **common, **flags, random_state=seed)
    texts = {
        "--ledger FILE": "ledger to charge; made if missing (.sqlite)",
        "--dataset NAME": "the ledger's name of the private rows' data set",
        "--purpose TEXT": "what the charge is for",
        "--ledger-epsilon EPSILON": "budget of the data set, if the ledger does not know it yet",
        "--ledger-delta DELTA": "delta of that budget (default: --delta)",
    }
    parser.add("ledger", texts)


def check_flags(args: argparse.Namespace, flags: Mapping[str, str]) -> None:
    """Refuse flags without those that they need, two that exclude each other, and a ledger without budget."""
    values = {name: value for name, value in vars(args).items() if value is not None and value is not False}
    for name, needed in [*_NEEDS.items(), *args.needs]:
        if name in values and needed not in values:
            flag = _as_given(flag_of(name, flags), values[name])
            raise InputError(f"{flag} needs {flag_of(needed, flags)}; give both, or neither.")
    for first, second, why in _EXCLUDES:
        if first in values and second in values:
            pair = " and ".join(_as_given(flag_of(name, flags), values[name]) for name in (first, second))
            raise InputError(f"{pair} cannot be combined, since {why}; leave one of them out.")
    if "ledger" in values and "ledger_epsilon" not in values and not args.ledger.exists():
        raise InputError(f"--ledger {args.ledger} is new; give its data set a --ledger-epsilon.")


def flag_of(name: str, flags: Mapping[str, str]) -> str:
    """The flag that gives an argument."""
    return flags.get(name, f"--{name.replace('_', '-')}")


def _as_given(flag: str, value: object) -> str:
    """A flag and its value as they were given."""
    if value is True:
        return flag
    return f"{flag} {','.join(f'{bound:g}' for bound in value) if isinstance(value, tuple) else value}"


def passed(args: argparse.Namespace, owner: Any, *more: Any, kind: str = "") -> dict[str, Any]:
    """Parameters of ``owner`` from their flags; other flags are refused, unless ``more`` functions have them.

    ``kind`` is what messages call the owner.
    """
    values, takes = vars(args), set(_OF_FILES)
    for function in (owner, *more):
        takes |= inspect.signature(function).parameters.keys()
    named = args.parser.parameters
    taken = {flag for name, flag in named.items() if name in takes}
    for flag in named.values():
        value = values.get(args.parser.flags()[flag])
        if flag not in taken and value is not None:
            raise InputError(f"{_as_given(flag, value)} is not for {kind}; leave it out.")
    return {name: values[name] for name in args.parser.passed if name in values and name in takes}


def charged_data_set(args: argparse.Namespace, own: dict[str, Any]) -> LedgerDataset | None:
    """The data set to charge; a given budget is added to its ledger, with the ``own`` delta of the charge."""
    if args.ledger is None:
        return None
    ledger = PrivacyLedger(args.ledger)
    if args.ledger_epsilon is not None:
        delta = own.get("delta", 1e-5) if args.ledger_delta is None else args.ledger_delta
        unit = "row" if args.group_column is None else args.group_column
        ledger.add_dataset(args.dataset, epsilon=args.ledger_epsilon, delta=delta, unit=unit)
    dataset = ledger[args.dataset]
    return dataset if args.purpose is None else dataset.for_purpose(args.purpose)
