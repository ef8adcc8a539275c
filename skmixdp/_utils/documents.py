"""Documents: sections of rows and sentences, as text, as Markdown, and as HTML for notebooks and pages."""

import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any, NamedTuple

from .validation import printable

_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem;
  overflow-wrap: anywhere }
h1, h2, h3 { line-height: 1.2; margin: 1.6em 0 .4em; break-after: avoid }
h1 { font-size: clamp(1.2rem, 5.5vw, 2rem) }
p, ul, ol { margin: .5em 0 }
li { margin: .3em 0; break-inside: avoid }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .35em .8em .35em 0; border-top: 1px solid #8886 }
th { width: 28%; font-weight: 600 }
tr, figure { break-inside: avoid }
figure { margin: 2.6em 0 1em }
.bar { position: relative; height: .8em; border-radius: .4em; border: 1px solid #888;
  background: linear-gradient(90deg, #009e73, #e69f00, #d55e00); print-color-adjust: exact;
  -webkit-print-color-adjust: exact }
.bar * { position: absolute; transform: translateX(-50%) }
.bar i { top: -.35em; bottom: -.35em; border-left: .25em solid }
.bar b { bottom: 1.1em; white-space: nowrap }
figcaption { display: flex; justify-content: space-between; gap: 1em; font-size: .9em; margin-top: .5em }
@media (max-width: 30rem) { th, td { display: block; width: auto; padding-right: 0 }
  td { border-top: 0; padding-top: 0 } }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt } }
"""

#: A document within a page: its title, if it has one, is a heading, and those of sections are too.
_HTML = """\
{% if first %}<p><b>{{ first }}</b></p>{% endif %}{% if title %}<h1>{{ title }}</h1>{% endif %}\
{% set left = "" if title else " style='text-align:left'" | safe %}\
{% set name = "" if title else " style='text-align:left; white-space:nowrap'" | safe %}\
{% for section in sections %}\
{% if title and section.title %}<h{{ section.level }}>{{ section.title }}</h{{ section.level }}>
{% endif %}{% if section.scale %}{% set at = '%.1f%%' | format(200 * section.scale - 100) %}\
<figure><div class='bar'><i style='left:{{ at }}'></i><b style='left:clamp(1.4em, {{ at }}, 100% - 1.4em)'>\
{{ percent(section.scale) }}</b></div>\
<figcaption><span>50%: a coin toss</span><span>100%: no protection</span></figcaption></figure>
{% endif %}{% for text in section.paragraphs %}<p>{{ text }}</p>
{% endfor %}{% if section.rows or section.columns %}<table>\
{% if section.title and not title %}<caption>{{ section.title }}</caption>{% endif %}\
{% if section.columns %}<tr>{% for cell in section.columns %}<th{{ left }}>{{ cell }}</th>{% endfor %}</tr>
{% endif %}{% for row in section.rows %}<tr>{% for cell in row %}\
{% if loop.first and not section.columns %}<th{{ name }}>{{ cell }}</th>\
{% else %}<td{{ left }}>{{ cell }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</table>
{% endif %}{% for text, part, total in section.bars %}\
<p>{{ text }} <progress value='{{ part }}' max='{{ total }}'></progress></p>{% endfor %}\
{% if section.bullets %}<ul>
{% for text in section.bullets %}<li>{{ text }}</li>
{% endfor %}</ul>
{% endif %}{% for text in section.notes %}<p>{{ text }}</p>{% endfor %}{% endfor %}"""

_PAGE = """<!DOCTYPE html>
<html lang='en'>
<head><meta charset='utf-8'/><meta name='viewport' content='width=device-width'/>
<title>{{ title }}</title>
<style>{{ style | safe }}</style></head>
<body>
{{ body | safe }}</body>
</html>
"""


class Section(NamedTuple):
    """A part of a document; what is empty is left out."""

    title: str = ""
    rows: Sequence[Sequence[object]] = ()  # names and values, or cells below ``columns``
    columns: Sequence[str] = ()
    paragraphs: Sequence[str] = ()  # before the rows
    bullets: Sequence[str] = ()  # after the rows
    notes: Sequence[str] = ()  # after the bullets
    scale: float | None = None  # in HTML, a probability between a coin toss and 1 that is drawn
    bars: Sequence[tuple[str, float, float]] = ()  # in HTML, texts with a part and a total
    level: int = 2

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing below the title."""
        return not [*filter(None, self[1:-1])]


class Document(ABC):
    """Base of what prints as text and is shown as HTML in a notebook."""

    @property
    @abstractmethod
    def no_guarantee(self) -> str:
        """The first line of the text, which names known leaks; empty without leaks."""

    @abstractmethod
    def _sections(self) -> Sequence[Section]:
        """The parts of the text and of the HTML."""

    def __str__(self) -> str:
        return as_text(self.no_guarantee, self._sections())

    def _repr_html_(self) -> str:
        return as_html(self.no_guarantee, self._sections())


def as_text(first: str, sections: Iterable[Section]) -> str:
    """Sections below a ``first`` line, as aligned text; long values are wrapped but the first, a claim."""
    lines = [printable(first)] if first else []
    for section in sections:
        table = [section.columns, *section.rows] if section.columns else section.rows
        cells = [[printable(str(cell)) for cell in row] for row in table]
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        lines += [section.title] if section.title else []
        for place, (*names, value) in enumerate(cells):
            start = "".join(f"  {name:<{width}}" for name, width in zip(names, widths, strict=False)) + "  "
            wrapper = textwrap.TextWrapper(
                97, start, " " * len(start), break_long_words=False, break_on_hyphens=False
            )
            is_whole = place == 0 or section.columns
            lines.append(start + value if is_whole else wrapper.fill(value) or start)
        lines += [f"  {printable(note)}" for note in section.notes]
    return "\n".join(lines)


def as_markdown(title: str, first: str, sections: Iterable[Section]) -> str:
    """A document in Markdown, with texts escaped."""
    blocks = [f"**{_plain(first)}**"] if first else []
    blocks.append(f"# {_plain(title)}")
    for section in sections:
        if section.is_empty:
            continue
        blocks += [f"{'#' * section.level} {_plain(section.title)}"] if section.title else []
        blocks += map(_plain, section.paragraphs)
        if section.rows:
            table = [section.columns or ("", ""), *section.rows]
            lines = [f"| {' | '.join(_plain(str(cell)) for cell in row)} |" for row in table]
            blocks.append("\n".join([lines[0], f"|{' --- |' * len(table[0])}", *lines[1:]]))
        if section.bullets:
            blocks.append("\n".join(f"- {_plain(text)}" for text in section.bullets))
        blocks += map(_plain, section.notes)
    return "\n\n".join(blocks) + "\n"


def as_html(first: str, sections: Iterable[Section], title: str = "") -> str:
    """Sections below a ``first`` line, in HTML. Without a title, those of sections are captions of tables."""
    shown = [section for section in sections if not section.is_empty]
    return html(_HTML, first=first, title=title, sections=shown, percent=percent)


def as_page(title: str, first: str, sections: Iterable[Section]) -> str:
    """A document in HTML, as one file without scripts or links, for screens and print."""
    return html(_PAGE, title=title, style=_STYLE, body=as_html(first, sections, title))


def html(template: str, **values: object) -> str:
    """A template of Jinja2 with these values, which are escaped unless the template calls them safe."""
    return str(_compiled(template).render(values))


@cache
def _compiled(template: str) -> Any:
    from jinja2 import Environment  # imported here, since most fits write no HTML

    return Environment(autoescape=True, keep_trailing_newline=True).from_string(template)


def percent(probability: float) -> str:
    """A bound in percent, rounded up."""
    return f"{math.ceil(100 * probability)}%"


def sentence(text: str) -> str:
    """A text with a capital letter (unless a name begins it) and a full stop; nothing for an empty text."""
    if not text:
        return ""
    first = text[:1] if "_" in text.split(" ")[0] else text[:1].upper()
    return f"{first}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def _plain(text: str) -> str:
    """A text in one line that Markdown and HTML show unchanged."""
    line = escape(printable(" ".join(text.split())), quote=False)
    for character in "\\`*_[]|#":
        line = line.replace(character, f"\\{character}")
    return line
