"""What an index shows: absolute links, addresses of the project, classifiers and badges that are true."""

import re
import tomllib
from pathlib import Path

from tests.packaging.addressed import absolute, with_urls

ROOT = Path(__file__).parents[2]
ADDRESS = "https://host.example/owner/name"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_all_links_of_the_readme_become_absolute():
    shown = absolute(README, ADDRESS, "v1.0.0")
    targets = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert len(targets) > 30 and all(target.startswith("https://") for target in targets)
    assert f"{ADDRESS}/raw/v1.0.0/docs/images/front.png" in targets
    assert f"{ADDRESS}/blob/v1.0.0/LICENSE" in targets
    assert re.findall(r"\]\(([^)\s]+)\)", README) == [
        re.sub(rf"^{ADDRESS}/(raw|blob)/v1\.0\.0/", "", target) for target in targets
    ]


def test_links_of_every_kind():
    text = "[a](b.md#c) [![d](https://e/f.svg)](LICENSE) ![g](h.png) [i](https://j)"
    assert absolute(text, "A", "T") == (
        "[a](A/blob/T/b.md#c) [![d](https://e/f.svg)](A/blob/T/LICENSE) ![g](A/raw/T/h.png) [i](https://j)"
    )


def test_the_metadata_have_the_addresses_of_the_project():
    project = tomllib.loads(with_urls(PROJECT, ADDRESS, "v1.0.0"))["project"]
    assert set(project["urls"]) == {"Source", "Issues", "Documentation", "Changelog"}
    for url in project["urls"].values():
        file = url.removeprefix(f"{ADDRESS}/blob/v1.0.0/")
        assert url.startswith(ADDRESS) and (file == url or (ROOT / file).exists())
    assert {**project, "urls": None} == {**tomllib.loads(PROJECT)["project"], "urls": None}


def test_the_release_is_built_with_them():
    steps = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert 0 < steps.index("tests.packaging.addressed") < steps.index("make package")


def test_badges_and_classifiers_are_those_of_the_project():
    project = tomllib.loads(PROJECT)["project"]
    versions = re.findall(r"Python :: (3\.\d+)", str(project["classifiers"]))
    assert project["requires-python"] == f">={versions[0]}"
    assert f"python-{'%20%7C%20'.join(versions)}-" in README
    assert f"license-{project['license'].replace('-', '--')}-" in README
    least = next(each for each in project["dependencies"] if each.startswith("scikit-learn"))
    assert f"scikit--learn-{least.removeprefix('scikit-learn>=')}+-" in README
