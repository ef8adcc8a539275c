"""The check of a tag before a release."""

import pytest
import yaml

from tests.docs.test_facts import ROOT
from tests.packaging.released import faults

CHANGES = "# Changes\n\n## 1.2.0 (2026-01-02)\n\n- A line.\n"
CITATION = "title: a\nversion: 1.2.0\n"


def test_a_tag_of_what_is_there_may_be_released():
    assert faults("v1.2.0", "1.2.0", CHANGES, CITATION) == []


@pytest.mark.parametrize(
    ("tag", "version", "changes", "citation", "fault"),
    [
        ("v1.2.1", "1.2.0", CHANGES, CITATION, "the tag is v1.2.1"),
        ("v1.2.0.dev0", "1.2.0.dev0", CHANGES, CITATION, "is no release"),
        ("v1.2.0", "1.2.0", CHANGES.replace("2026-01-02", "unreleased"), CITATION, "with a date"),
        ("v1.2.0", "1.2.0", CHANGES, CITATION.replace("1.2.0", "1.1.0"), "CITATION.cff"),
    ],
)
def test_other_tags_may_not(tag, version, changes, citation, fault):
    assert any(fault in found for found in faults(tag, version, changes, citation))


def test_workflows_run_targets_that_the_makefile_has():
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert len(workflows) == 3
    for workflow in workflows:
        for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
            for command in (step["run"] for step in job["steps"] if "run" in step):
                if command.startswith("make "):
                    assert f"\n{command.split()[1]}:" in targets, command
