"""``python -m tests.packaging.addressed ADDRESS TAG``: write an address into README and metadata.

An index of packages shows the README without the files around it, so its links must be absolute. The
address is known where a release is built. It needs no other package.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

_LINK = re.compile(r"(!?\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\]\()(?!\w+:|#)([^)\s]+)(\))")


def absolute(readme: str, address: str, tag: str) -> str:
    """The text of the README with absolute links, to pictures and to pages of the repository."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}{address}/{kind}/{tag}/{match[2]}{match[3]}"

    return _LINK.sub(link, readme)


def with_urls(project: str, address: str, tag: str) -> str:
    """The text of pyproject.toml with the addresses that an index shows."""
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    urls = {"Source": address, "Issues": f"{address}/issues"}
    urls |= {name: f"{address}/blob/{tag}/{page}" for name, page in pages.items()}
    table = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return project.replace("[project.scripts]", f"[project.urls]\n{table}\n[project.scripts]", 1)


def main(address: str, tag: str) -> None:
    """Rewrite both files of the checkout."""
    for name, rewritten in (("README.md", absolute), ("pyproject.toml", with_urls)):
        path = ROOT / name
        path.write_text(rewritten(path.read_text(encoding="utf-8"), address, tag), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
