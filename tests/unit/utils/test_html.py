"""Templates escape what they are given."""

import html as plain

import pytest

from tests.private_names import html

NASTY = "<script>'\"&amp;{{ 7 * 7 }}{% x %}"


@pytest.mark.parametrize(
    "template", ["<p>{{ text }}</p>", "{% for one in [text] %}<p>{{ one }}</p>{% endfor %}"]
)
def test_texts_are_escaped_and_no_templates(template):
    found = html(template, text=NASTY)
    assert "<script" not in found and "'" not in found and '"' not in found
    assert plain.unescape(found) == f"<p>{NASTY}</p>"


def test_what_is_called_safe_is_left():
    assert html("{{ part | safe }}\n", part=html("<p>{{ text }}</p>", text="&")) == "<p>&amp;</p>\n"
