"""``python -m tests.packaging.released v1.2.3``: whether a tag may be released. It needs no other package."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def faults(tag: str, version: str, changes: str, citation: str) -> list[str]:
    """What is wrong with a tag, by the texts of the version, of the changelog and of the citation."""
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag} and the package says {version}")
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"the version {version} is no release")
    heading = re.search(rf"^## {re.escape(version)} \((.*)\)$", changes, flags=re.M)
    if heading is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[1]):
        found.append(f"CHANGELOG.md has no section of {version} with a date")
    if not re.search(rf"^version: [\"']?{re.escape(version)}[\"']?$", citation, flags=re.M):
        found.append(f"CITATION.cff does not name version {version}")
    return found


def main(tag: str) -> int:
    """Print what is wrong; return 1 if something is."""
    version = re.search(r'"(.+)"', (ROOT / "skmixdp" / "_version.py").read_text().split("=")[1])
    texts = ((ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    found = faults(tag, version[1] if version else "", *texts)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
