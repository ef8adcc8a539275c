"""`make test-all` runs tests of scripts; `make test` does not even import them."""

from pathlib import Path

import pytest

_QUICK = ("test_features.py", "test_mutants.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is slow."""
    slow = collection_path.suffix == ".py" and collection_path.name not in _QUICK
    return True if slow and config.option.markexpr.startswith("not slow") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.name not in _QUICK:
            item.add_marker(pytest.mark.slow)
