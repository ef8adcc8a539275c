"""HTML from templates."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

_TABLE = """{{ first | safe }}<table>{% if caption %}<caption>{{ caption }}</caption>{% endif %}\
<tr>{% for name in names %}<th style='text-align:left'>{{ name }}</th>{% endfor %}</tr>\
{% for row in rows %}<tr>{% for cell in row %}<td style='text-align:left'>{{ cell }}</td>{% endfor %}</tr>\
{% endfor %}</table>{% for line in notes %}<p>{{ line }}</p>{% endfor %}"""


def html(template: str, **values: object) -> str:
    """A template of Jinja2 with these values, which are escaped unless the template calls them safe."""
    return str(_compiled(template).render(values))


def html_table(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    first: str = "",
    notes: Sequence[str] = (),
) -> str:
    """A table with names of columns, between ``first``, which is HTML, and notes."""
    return html(_TABLE, names=names, rows=[*rows], caption=caption, first=first, notes=notes)


@cache
def _compiled(template: str) -> Any:
    from jinja2 import Environment  # imported here, since most fits write no HTML

    return Environment(autoescape=True, keep_trailing_newline=True).from_string(template)
