"""The hub from which libraries download weights."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies

from huggingface_hub import constants


@contextmanager
def reachable_hub() -> Iterator[None]:
    """Use only downloaded weights if the hub cannot be found, since its client would retry for a minute."""
    if constants.HF_HUB_OFFLINE or getproxies() or _has_address(urlsplit(constants.ENDPOINT).hostname):
        yield
        return
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = False


def _has_address(host: str | None) -> bool:
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False
