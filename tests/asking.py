"""Requests for sums of rows, for tests of row sources."""

from skmixdp._rows import Batch, PrivateQuery, Request


def request_of(points, contribute, batch=None, resolution=None, *, run=None, observe=None, **query):
    """A request for the sums of what rows contribute; other arguments are those of a query."""
    asked = PrivateQuery(points, contribute, (), **query)
    return Request(asked, batch or Batch(), resolution, run, observe)
