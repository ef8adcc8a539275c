"""What tests of hostile cases share."""

import resource

import pytest

#: Bytes of address space; most of what the libraries reserve is never used.
_MEMORY = 24 * 2**30


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """What fills the memory shall fail where it does so, and not be killed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.fixture
def part(request):
    """Which part of a test's cases is tried."""
    return getattr(request, "param", 0)
