"""Requests for sums of rows and their answers, for tests of row sources and of what asks them."""

import pytest

from tests.private_names import Batch, PrivateQuery, Request


def request_of(points, contribute, batch=None, resolution=None, *, observe=None, **query):
    """A request for the sums of what rows contribute; other arguments are those of a query."""
    asked = PrivateQuery(points, contribute, (), **query)
    return Request(asked, batch or Batch(), resolution, observe)


def answered(rounds, *arrays):
    """What a generator of queries returns for these last arrays."""
    with pytest.raises(StopIteration) as ended:
        rounds.send(arrays)
    return ended.value.value


def exact_sums(query, rows):
    """The statistics of a query, summed over the rows of a source."""
    ((_, sums),) = rows.private_sums([request_of(query.points, query.contribute)])
    return sums
