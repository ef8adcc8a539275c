"""Pages on guarantees for any reader: one HTML file each, without scripts, links or files of their own.

All texts are escaped here.
"""

import html
from collections.abc import Iterable, Mapping

from .report import html_line, percent

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


def page(title: str, no_guarantee: str, *parts: str) -> str:
    """A page of parts in HTML; ``no_guarantee`` is its first line, if there is a known leak."""
    heading = html.escape(title)
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head><meta charset='utf-8'/>"
        "<meta name='viewport' content='width=device-width'/>"
        f"<title>{heading}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body>\n{html_line(no_guarantee)}<h1>{heading}</h1>\n{''.join(parts)}</body>\n</html>\n"
    )


def section(title: str, *parts: str, level: int = 2) -> str:
    """A heading and the parts below it; nothing if they are empty."""
    body = "".join(parts)
    return f"<h{level}>{html.escape(title)}</h{level}>\n{body}" if body else ""


def paragraph(text: str) -> str:
    """A text as a paragraph; nothing for an empty text."""
    return f"<p>{html.escape(text)}</p>\n" if text else ""


def sentence(text: str) -> str:
    """A text with a capital letter and a full stop, unless a name begins it; nothing for an empty text."""
    if not text:
        return ""
    first = text[:1] if "_" in text.split(" ")[0] else text[:1].upper()
    return f"{first}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def bullets(texts: Iterable[str]) -> str:
    """Sentences in a list; nothing if there are none."""
    items = "".join(f"<li>{html.escape(sentence(text))}</li>\n" for text in texts)
    return f"<ul>\n{items}</ul>\n" if items else ""


def table(rows: Mapping[str, str]) -> str:
    """A table of names and values; nothing if it is empty."""
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>\n"
        for name, value in rows.items()
    )
    return f"<table>\n{body}</table>\n" if body else ""


def attack(success: float, words: str, when: str = "") -> str:
    """A bound on the success of an attacker, on a scale from a coin toss to no protection, and in words.

    Without ``words``, nothing is claimed. ``when`` begins the sentence.
    """
    place = f"{200 * success - 100:.1f}%"
    label = f"<b style='left:clamp(1.4em, {place}, 100% - 1.4em)'>{percent(success)}</b>"
    said = f"{when} an attacker {words}. {_TERMS}" if words else ""
    return (
        f"<figure><div class='bar'><i style='left:{place}'></i>{label}</div>"
        "<figcaption><span>50%: a coin toss</span><span>100%: no protection</span></figcaption></figure>\n"
        + paragraph(sentence(said.strip()))
    )
