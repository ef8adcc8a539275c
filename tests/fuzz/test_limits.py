"""A broken promise is found: otherwise the other tests of this folder would show nothing."""

import pickle
import warnings

import pytest

from tests.secrets import TEXT

from . import limits as module
from .limits import attempt, check_html, check_message, check_text, finite, limits


def _quotes():
    raise ValueError(TEXT)


@pytest.mark.parametrize(
    "action",
    [
        lambda: check_message("a\nb" * 9),
        lambda: check_message("something is wrong", ["epsilon"]),
        lambda: check_html("<script>", []),
        lambda: check_html("<p onclick='x'>", []),
        lambda: check_html("<b>", ["<b>x"]) or check_html("<b>x", ["<b>x"]),
        lambda: check_text("a\x07"),
        lambda: finite("x", [float("nan")]),
        lambda: attempt(_quotes, ValueError, secret=True),
        lambda: attempt(lambda: warnings.warn(TEXT, UserWarning, stacklevel=1), secret=True),
        lambda: attempt(lambda: warnings.warn("old", DeprecationWarning, stacklevel=1)),
    ],
)
def test_a_broken_promise_is_found(action):
    with pytest.raises(AssertionError):
        action()


def forever():
    while True:
        pass


def test_what_is_unpickled_written_elsewhere_or_late_is_found(tmp_path, monkeypatch):
    with pytest.raises(AssertionError, match="pickle"), limits():
        pickle.loads(b"cbuiltins\nlen\n.")
    with limits(pickles=True) as folder:
        (folder / "here").write_bytes(pickle.dumps(len))
        assert pickle.loads((folder / "here").read_bytes()) is len
    with pytest.raises(AssertionError, match="outside"), limits():
        (tmp_path / "other.txt").write_text("x")
    monkeypatch.setattr(module, "CPU_SECONDS", 0.05)
    with pytest.raises(AssertionError, match="took more"), limits():
        forever()
