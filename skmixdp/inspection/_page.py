"""Self-contained HTML pages on guarantees for readers of any background, without scripts or links."""

from collections.abc import Iterable, Mapping

from .._utils.templates import html
from ..privacy.report import html_line, percent

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

_TERMS = (
    "This holds for any attacker, even one who knows all other rows and everything public, if both answers "
    "were equally likely before."
)


_PAGE = """<!DOCTYPE html>
<html lang='en'>
<head><meta charset='utf-8'/><meta name='viewport' content='width=device-width'/>
<title>{{ title }}</title>
<style>{{ style | safe }}</style></head>
<body>
{{ first | safe }}<h1>{{ title }}</h1>
{% for part in parts %}{{ part | safe }}{% endfor %}</body>
</html>
"""
_SECTION = "<h{{ level }}>{{ title }}</h{{ level }}>\n{% for part in parts %}{{ part | safe }}{% endfor %}"
_BULLETS = "<ul>\n{% for text in texts %}<li>{{ text }}</li>\n{% endfor %}</ul>\n"
_TABLE = """<table>
{% for name, value in rows %}<tr><th>{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}</table>
"""
_ATTACK = """<figure><div class='bar'><i style='left:{{ place }}'></i>\
<b style='left:clamp(1.4em, {{ place }}, 100% - 1.4em)'>{{ percent }}</b></div>\
<figcaption><span>50%: a coin toss</span><span>100%: no protection</span></figcaption></figure>
{{ words | safe }}"""


def page(title: str, no_guarantee: str, *parts: str) -> str:
    """A page of parts in HTML; ``no_guarantee`` is its first line, if there is a known leak."""
    return html(_PAGE, title=title, style=_STYLE, first=html_line(no_guarantee), parts=parts)


def section(title: str, *parts: str, level: int = 2) -> str:
    """A heading and the parts below it; nothing if they are empty."""
    return html(_SECTION, level=level, title=title, parts=parts) if any(parts) else ""


def paragraph(text: str) -> str:
    """A text as a paragraph; nothing for an empty text."""
    return html("<p>{{ text }}</p>\n", text=text) if text else ""


def sentence(text: str) -> str:
    """A text with a capital letter (unless a name begins it) and a full stop; nothing for an empty text."""
    if not text:
        return ""
    first = text[:1] if "_" in text.split(" ")[0] else text[:1].upper()
    return f"{first}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def bullets(texts: Iterable[str]) -> str:
    """Sentences in a list; nothing if there are none."""
    sentences = [*map(sentence, texts)]
    return html(_BULLETS, texts=sentences) if sentences else ""


def table(rows: Mapping[str, str]) -> str:
    """A table of names and values; nothing if it is empty."""
    return html(_TABLE, rows=rows.items()) if rows else ""


def attack(success: float, words: str, when: str = "") -> str:
    """A bound on the success of an attacker, as text and on a scale from a coin toss to no protection.

    Without ``words``, nothing is claimed. ``when`` begins the sentence.
    """
    said = f"{when} an attacker {words}. {_TERMS}" if words else ""
    place = f"{200 * success - 100:.1f}%"
    return html(_ATTACK, place=place, percent=percent(success), words=paragraph(sentence(said.strip())))
