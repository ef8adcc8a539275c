"""Runs tests and writes down how each ended: ``python -m tests.sabotage.outcomes REPORT TESTS...``."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest


class Outcomes:
    """Tells failed assertions from everything else that can go wrong in a test."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {"passed": 0, "skipped": 0, "failed": [], "broken": []}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self):
        """The examples of ``make test``, of which the first that fails will do."""
        # Imported earlier, its assertions could not be rewritten.
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("sabotage", settings(), phases=phases, report_multiple_bugs=False)
        settings.load_profile("sabotage")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.skipped:
            self.found["skipped"] += 1
        elif report.passed and report.when == "call":
            self.found["passed"] += 1
        elif report.failed:
            asserted = report.when == "call" and by_assertion(call.excinfo.value)
            what = item.nodeid if asserted else f"{item.nodeid}, {report.when}: {call.excinfo.exconly()}"
            self.found["failed" if asserted else "broken"].append(what)
        return report

    def pytest_collectreport(self, report):
        if report.failed:
            self.found["broken"].append(f"{report.nodeid}, collection: {report.longrepr}")


def by_assertion(error: BaseException) -> bool:
    """Whether a test failed by what it asserts; hypothesis groups the failures of several examples."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(by_assertion, error.exceptions))
    return isinstance(error, (AssertionError, pytest.fail.Exception))


def main(report: str, *tests: str) -> int:
    """Exit status of pytest."""
    outcomes = Outcomes()
    status = pytest.main(["-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests], plugins=[outcomes])
    found = {**outcomes.found, "seconds": time.process_time()}
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
