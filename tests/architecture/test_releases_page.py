"""The page of releases is what the list says."""

from .releases_page import PAGE, page


def test_the_page_lists_all_releases():
    """``python -m tests.architecture.releases_page`` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()
