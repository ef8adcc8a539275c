"""Finds functions, methods and constants of the package by name, and edits them token by token."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<string>[A-Za-z]{0,2}(?:'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<number>\d(?:[\w.]|(?<=[eE])[+-])*)
    |(?P<name>\w+)
    |(?P<sign>\S)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A token of source text; ``key`` is equal for two spellings of the same token."""

    key: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of a text that need not be complete Python."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        key = match.group()
        if match.lastgroup == "comment":
            continue
        if match.lastgroup == "number":
            key = repr(ast.literal_eval(key))
        elif match.lastgroup == "string":
            key = key.replace('"', "'") if "f" in key[:2].lower() else repr(ast.literal_eval(key))
        elif key in ")]}" and found and found[-1].key == ",":
            found.pop()
        found.append(Token(key, *match.span()))
    return found


@dataclass(frozen=True)
class Definition:
    """A function, method or assigned name of the package."""

    path: Path
    first: int
    last: int
    text: str

    def spans_of(self, old: str) -> list[tuple[int, int]]:
        """Where the tokens of ``old`` stand in the text, from first to last character."""
        wanted = [token.key for token in tokens(old)]
        here = tokens(self.text)
        keys = [token.key for token in here]
        return [
            (here[i].start, here[i + len(wanted) - 1].end)
            for i in range(len(keys) - len(wanted) + 1)
            if keys[i : i + len(wanted)] == wanted
        ]

    def replaced(self, old: str, new: str) -> str:
        """The text with ``new`` in place of ``old``; further lines of ``new`` are indented alike."""
        ((start, end),) = self.spans_of(old)
        before = self.text[:start]
        line = before[before.rfind("\n") + 1 :]
        inner = line[: len(line) - len(line.lstrip())]
        return before + new.replace("\n", f"\n{inner}") + self.text[end:]

    def edited(self, old: str, new: str) -> str:
        """The whole file with ``new`` in place of ``old``."""
        text = self.replaced(old, new)
        lines = self.path.read_text(encoding="utf-8").splitlines()
        outer = re.match(r"\s*", lines[self.first - 1]).group()
        lines[self.first - 1 : self.last] = [outer + line for line in text.splitlines()]
        return "\n".join(lines) + "\n"


def sources_in(folder: Path) -> dict[Path, str]:
    """The text of all modules in a folder."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}


def definitions(sources: Mapping[Path, str], name: str) -> Iterator[Definition]:
    """All that has a qualified name such as ``PoissonBatch.draw``, in whatever file it is."""
    for path, text in sources.items():
        for node in _named(text).get(name, ()):
            first = min(n.lineno for n in (node, *getattr(node, "decorator_list", ())))
            yield Definition(path, first, node.end_lineno, ast.unparse(node))


@lru_cache(maxsize=1024)
def _named(text: str) -> dict[str, list[ast.stmt]]:
    """What a file defines, by qualified names."""
    found: dict[str, list[ast.stmt]] = {}

    def look(parent: ast.AST, prefix: str) -> None:
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef):
                look(node, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                look(node, prefix)
            for name in _names(node):
                found.setdefault(prefix + name, []).append(node)

    look(ast.parse(text), "")
    return found


def _names(node: ast.AST) -> tuple[str, ...]:
    """What a statement defines, but for classes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return tuple(target.id for target in targets if isinstance(target, ast.Name))
