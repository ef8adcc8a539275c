"""Texts use the field's words, and sentences of the documentation are short."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Folders and files whose texts are checked.
CHECKED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "benchmarks", "skmixdp")

#: Words that are not the field's, and what to say instead.
INSTEAD = {
    r"doors?": "mechanism",
    r"mend(s|ed|ing)?": "fix, remedy",
    r"(un)?paid|pays?|paying": "charge, spend, account for",
    r"beside": "next to, compared with, in addition to",
    r"whence": "from which",
    r"strangers?": "name who is meant",
    r"wishes": "what is asked for",
    r"of no account": "irrelevant",
    r"for want of": "without",
    r"to speak of": "leave it out",
    r"rows that are many": "large data",
    r"hardly an?": "few, rarely",
    r"in the place of": "instead of",
}

#: Exact phrases in which such a word is right.
ALLOWED = (
    '"Without-pay"',  # a category of Adult
)

FORBIDDEN = re.compile(rf"\b({'|'.join(INSTEAD)})\b", flags=re.IGNORECASE)

#: Words in the longest sentence that a page may have.
LONGEST_SENTENCE = 25

_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1[ \t]*$", flags=re.M | re.S)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ENDS_NO_SENTENCE = re.compile(r"\b(e\.g|i\.e|et al|vs|cf)\.")
_NEW_PARAGRAPH = re.compile(r"[ \t]*([-*] |\d+\. |#|>|$)")


def texts(*suffixes):
    """The files that are checked, in order."""
    places = [ROOT / name for name in CHECKED]
    found = [file for place in places for file in ([place] if place.is_file() else place.rglob("*"))]
    return sorted(file for file in found if file.suffix in suffixes)


def forbidden_words(text):
    """Forbidden words with their lines."""
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    return [
        f"line {number}: {found[0]!r}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found in FORBIDDEN.finditer(line)
    ]


def paragraphs(page):
    """Paragraphs, list items and headings of a page in Markdown, without code and tables."""
    lines = _BLOCK.sub("\n", page).splitlines()
    current = []
    for line in [*lines, ""]:
        is_table = line.lstrip().startswith("|")
        is_code = line.startswith("    ") and not current
        if is_table or is_code or _NEW_PARAGRAPH.match(line):
            if current:
                yield " ".join(current)
            current = []
        if not (is_table or is_code) and line.strip():
            current.append(re.sub(r"^[ \t]*([-*] |\d+\. |#+ |> )", "", line).strip())


def sentences(page):
    """Sentences of a page in Markdown; a piece of code or a formula in backquotes is one word."""
    for paragraph in paragraphs(page):
        plain = _LINK.sub(r"\1", re.sub(r"`[^`]+`", "code", paragraph))
        plain = _ENDS_NO_SENTENCE.sub(r"\1", plain)
        yield from re.split(r"(?<=[.!?])[\")*]*\s+", plain)


def long_sentences(page):
    """Sentences of a page that have too many words."""
    return [one for one in sentences(page) if len(one.split()) > LONGEST_SENTENCE]


def test_words_are_the_fields():
    found = {file: forbidden_words(file.read_text(encoding="utf-8")) for file in texts(".md", ".py")}
    found = {str(file.relative_to(ROOT)): lines for file, lines in found.items() if lines}
    assert found == {}, "see INSTEAD in tests/docs/test_words.py for what to say"


def test_sentences_are_short():
    found = {
        str(page.relative_to(ROOT)): long
        for page in texts(".md")
        if (long := long_sentences(page.read_text(encoding="utf-8")))
    }
    assert found == {}, f"cut into sentences of at most {LONGEST_SENTENCE} words"


def test_forbidden_words_are_found():
    assert forbidden_words("All is well.\nA release that nobody paid for, beside the fit.") == [
        "line 2: 'paid'",
        "line 2: 'beside'",
    ]
    assert forbidden_words("The payload, the amendment and besides.") == []
    assert all(FORBIDDEN.search(text) for text in ("the Door", "unpaid", "for want of rows", "hardly a row"))


def test_long_sentences_are_found():
    long = " ".join(["word"] * (LONGEST_SENTENCE + 1))
    text = f"# Title\n\n- Short. {long}.\n- Short\n  too.\n"
    page = f"{text}\n| {long} |\n\n```python\n{long}\n```\n\n    {long}\n"
    assert long_sentences(page) == [f"{long}."]
    assert list(sentences("One, `a. b` and [two](x.md).\nThree et al. 2022\nend.")) == [
        "One, code and two.",
        "Three et al 2022 end.",
    ]
