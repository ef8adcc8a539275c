"""Sources of private rows, and what all of them promise."""

from .contract import Block, Contribute, Contribution, PrivateRows, Request, Sums
from .memory import InMemoryRows, sum_resolution

__all__ = [
    "Block",
    "Contribute",
    "Contribution",
    "InMemoryRows",
    "PrivateRows",
    "Request",
    "Sums",
    "sum_resolution",
]
