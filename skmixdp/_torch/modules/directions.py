"""Directions in parameter space that are added to the parameters without being stored.

A random direction is a seed. Its entries are drawn again, tensor by tensor, each time it is added to the
parameters, which needs only the memory of the largest parameter tensor.

Source: MeZO (Malladi et al. 2023), Algorithm 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_PIECE = 2**16


@dataclass(frozen=True)
class Seeded:
    """Independent standard normal entries, drawn from a seed."""

    seed: int

    def blocks(self, parameters: Sequence[Tensor]) -> Iterator[Tensor]:
        """The block for each parameter, with its shape, dtype and device."""
        generator = torch.Generator(parameters[0].device).manual_seed(self.seed)
        for parameter in parameters:
            yield torch.randn(
                parameter.shape, generator=generator, dtype=parameter.dtype, device=parameter.device
            )


@dataclass(frozen=True)
class Dense:
    """A stored vector, such as a gradient: one tensor per parameter."""

    tensors: Sequence[Tensor]

    def blocks(self, parameters: Sequence[Tensor]) -> Iterator[Tensor]:
        return iter(self.tensors)


Vector = Seeded | Dense


class Direction:
    """A linear combination ``sum_j c_j v_j`` of vectors, computed only when needed."""

    # NumPy numbers leave their product with a direction to this class.
    __array_ufunc__ = None

    def __init__(self, terms: tuple[tuple[float, Vector], ...]) -> None:
        self.terms = terms

    @classmethod
    def dense(cls, tensors: Sequence[Tensor]) -> "Direction":
        """The direction that tensors hold."""
        return cls(((1.0, Dense(tensors)),))

    def __add__(self, direction: "Direction") -> "Direction":
        return Direction(self.terms + direction.terms)

    def __mul__(self, factor: float) -> "Direction":
        return Direction(tuple((float(factor) * c, vector) for c, vector in self.terms))

    __rmul__ = __mul__

    def add_to(self, parameters: Sequence[Tensor], step: float) -> None:
        """Add ``step`` times the direction in place, one block at a time."""
        streams = [(step * c, vector.blocks(parameters)) for c, vector in self.terms if c != 0]
        for parameter in parameters:
            for factor, blocks in streams:
                parameter.add_(next(blocks), alpha=factor)

    def formed(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The direction itself, as new tensors."""
        tensors = [torch.zeros_like(parameter) for parameter in parameters]
        self.add_to(tensors, 1.0)
        return tensors

    def largest_entry(self, longest_draw: float) -> float:
        """Bound on the absolute entries, by one for seeded vectors; NaN if an entry is NaN."""
        return sum(
            abs(factor) * sum(float(block.abs().max()) for block in vector.tensors)
            if isinstance(vector, Dense)
            else abs(factor) * longest_draw
            for factor, vector in self.terms
        )

    def norm(self, parameters: Sequence[Tensor]) -> float:
        """L2 norm, from one pass over the blocks."""
        if len(self.terms) == 1:
            ((factor, vector),) = self.terms
            return abs(factor) * math.sqrt(sum(dot([block], [block]) for block in vector.blocks(parameters)))
        tensors = self.formed(parameters)
        return math.sqrt(dot(tensors, tensors))


def dot(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    """Inner product of two formed directions, added up in float64."""
    return sum(
        float(torch.dot(x.double(), y.double()))
        for a, b in zip(first, second, strict=True)
        for x, y in zip(_pieces(a), _pieces(b), strict=True)
    )


def orthonormal(directions: Sequence[Direction], parameters: Sequence[Tensor]) -> list[Direction]:
    """Orthonormal directions with the same span, by Gram-Schmidt with repeated subtraction.

    What lies outside the span of earlier ones is dropped if it is shorter than the root of the precision.
    """
    basis: list[list[Tensor]] = []
    for direction in directions:
        tensors = direction.formed(parameters)
        tolerance = math.sqrt(torch.finfo(tensors[0].dtype).eps)
        length = math.sqrt(dot(tensors, tensors))
        if length == 0:
            continue
        _scale(tensors, 1 / length)
        for _ in range(2):
            for vector in basis:
                Direction.dense(vector).add_to(tensors, -dot(tensors, vector))
        outside = math.sqrt(dot(tensors, tensors))
        if outside > tolerance:
            _scale(tensors, 1 / outside)
            basis.append(tensors)
    return [Direction.dense(tensors) for tensors in basis]


def _pieces(tensor: Tensor) -> tuple[Tensor, ...]:
    """The entries of a tensor in short pieces, so that float64 copies need little memory."""
    return torch.split(tensor.reshape(-1), _PIECE)


def _scale(tensors: Sequence[Tensor], factor: float) -> None:
    for tensor in tensors:
        tensor.mul_(factor)
