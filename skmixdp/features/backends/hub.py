"""Loading of networks, by libraries that download weights from a hub."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies

import torch
from huggingface_hub import constants


@contextmanager
def loading(what: str, remedy: str) -> Iterator[None]:
    """A context that loads a network (``what`` in messages), whose random weights are always the same.

    Only downloaded weights are used if the hub cannot be found, since its client would retry for a minute.
    """
    offline = constants.HF_HUB_OFFLINE
    hosts = getproxies() or _has_address(urlsplit(constants.ENDPOINT).hostname)
    constants.HF_HUB_OFFLINE = offline or not hosts
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield
    # Unknown names, missing networks and damaged files raise errors of any type.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{what} ({reason[:300]}); {remedy}.") from error
    finally:
        constants.HF_HUB_OFFLINE = offline


def _has_address(host: str | None) -> bool:
    try:
        return bool(socket.getaddrinfo(host, 443))
    except OSError:
        return False
