"""Looks at the built site: ``python -m tests.docs.built``, after ``make pages`` has built it.

Every link within the site, and every picture, leads to a file and to an anchor that are there.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"


class Page(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, file):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.links += [known[name] for name in ("href", "src") if known.get(name)]
        self.anchors |= {known[name] for name in ("id", "name") if known.get(name)}


def broken(site):
    """Pairs of a page and a link of it that leads nowhere."""
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    found = []
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme == "file":
                found.append((file, link))
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            known = pages.get(target)
            if not target.exists() or (known and unquote(parts.fragment) not in known.anchors):
                found.append((file, link))
    return found


if __name__ == "__main__":
    if not SITE.exists():
        sys.exit(f"{SITE} is missing; build the site first.")
    sys.exit("\n".join(f"{file.relative_to(SITE)}: {link}" for file, link in broken(SITE)) or None)
