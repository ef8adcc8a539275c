"""The page of the releases of a fit: ``python -m tests.architecture.releases_page`` writes it."""

import inspect
import re
import sys

from tests.architecture.test_architecture import PACKAGE
from tests.architecture.test_releases import RELEASES, stated
from tests.private_names import STAGES, ChosenPairs, Knots

PAGE = PACKAGE.parent / "docs" / "releases.md"
_HEAD = """# Releases of a fit

A fit is the list of its releases, in the order of its report. Each has a share of the squared budget (mu
squared), by public facts and earlier releases. It is left out if noise would hide the answer. Training gets
what is left. This page is made from the list in `skmixdp/_fit/stages/__init__.py`. Sensitivities are as the
code states them, for one row or one person.

| line of the report | what it is for | share | sensitivity | tested in |
| --- | --- | --- | --- | --- |
"""


def _source(kind):
    """The source of a stage, and of what its file has for it; all of a file with one stage."""
    module, names = sys.modules[kind.__module__], [kind.__name__]
    source = inspect.getsource(module)
    if source.count("(Stage):") > 1:
        own = [name for name in vars(module) if re.search(rf"^(def|class) {name}\b", source, re.MULTILINE)]
        source = ""
        for name in names:
            source += inspect.getsource(getattr(module, name))
            names += [each for each in own if each not in names and re.search(rf"\b{each}[(.,]", source)]
    return source


def _row(stage):
    kind = type(stage)
    source = _source(kind)
    summary = inspect.getdoc(kind).partition("\n")[0]
    functions = [name for name in RELEASES if re.search(rf"\b{name.split('.')[0]}\(", source)]
    sensitivities = dict.fromkeys(text for name in functions for text in stated()[name])
    tests = dict.fromkeys(RELEASES[name][1].partition("::")[0] for name in functions)
    low, high = (f"{100 * share:.3g}%" for share in kind.limits)
    share = "what is left" if stage is STAGES.training else low if low == high else f"{low} to {high}"
    cells = (
        stage.name,
        f"{summary} (`{kind.__module__.replace('.', '/')}.py`)",
        share,
        ", ".join(f"`{text}`" for text in sensitivities) or "that of the clip",
        ", ".join(f"`{test}`" for test in tests) or "`tests/property/test_sensitivity.py`",
    )
    return f"| {' | '.join(cells)} |\n"


def page():
    """The text of the page."""
    additive = [kind.__new__(kind) for kind in (Knots, ChosenPairs)]  # which additive models have besides
    return _HEAD + "".join(map(_row, [*additive, *(stage for stage in STAGES.all if stage.name)]))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
