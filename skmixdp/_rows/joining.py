"""Several queries of one kind, asked as one.

A query about a head of ten outputs is small work for each block of rows, and sixteen of them have
sixteen times its fixed price. Queries whose ``contribute`` has a method ``beside(other)``, which returns
what contributes for both or None, are asked together: their points side by side, and so what is
contributed. The answer is taken apart again.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .source import Contribute, FloatArray, Request, Sums


class Joined:
    """Requests of one pass, those of one kind joined.

    Parameters
    ----------
    requests : sequence of Request
        What is asked. Only requests about the same rows at the same resolution are joined, and
        each of those that are must have as many points, columns and statistics.

    Attributes
    ----------
    requests : list of Request
        What is asked instead.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        groups: list[tuple[Request, list[int]]] = []
        for index, request in enumerate(requests):
            for place, (earlier, members) in enumerate(groups):
                contribute = _beside(earlier, request)
                if contribute is not None:
                    groups[place] = replace(earlier, contribute=contribute), [*members, index]
                    break
            else:
                groups.append((request, [index]))
        self._members = [members for _, members in groups]
        self.requests = [
            request if len(members) == 1 else _for_all(request, [requests[index] for index in members])
            for request, members in groups
        ]

    def answers(self, sums: Sequence[Sums]) -> list[Sums]:
        """The sums of each request that was given, from those of what was asked instead."""
        found: dict[int, Sums] = {}
        for members, (matrix, vector) in zip(self._members, sums, strict=True):
            parts = _shares(matrix, len(members)), _shares(vector, len(members))
            found |= zip(members, zip(*parts, strict=True), strict=True)
        return [found[index] for index in sorted(found)]


def _beside(one: Request, other: Request) -> Contribute | None:
    """What contributes for both, or None where they cannot be joined."""
    beside = getattr(one.contribute, "beside", None)
    alike = one.mask is other.mask and one.resolution == other.resolution and one.wide_sums == other.wide_sums
    if beside is None or not alike or one.n_head or other.n_head:
        return None
    contribute: Contribute | None = beside(other.contribute)
    return contribute if len(one.points) == len(other.points) else None


def _for_all(request: Request, members: Sequence[Request]) -> Request:
    points = np.concatenate([member.points for member in members])
    return replace(request, points=points, run=None, n_joined=len(members))


def _shares(array: FloatArray | None, n: int) -> Sequence[FloatArray | None]:
    return [None] * n if array is None else np.split(array, n)
