"""HTML from templates."""

from functools import cache
from typing import Any


def html(template: str, **values: object) -> str:
    """A template of Jinja2 with these values, which are escaped unless the template calls them safe."""
    return str(_compiled(template).render(values))


@cache
def _compiled(template: str) -> Any:
    from jinja2 import Environment  # imported here, since most fits write no HTML

    return Environment(autoescape=True, keep_trailing_newline=True).from_string(template)
