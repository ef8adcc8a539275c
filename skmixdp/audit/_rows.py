"""The rows of an audit."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """Rows and their labels or targets."""

    X: Array
    y: Array

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Any) -> "Rows":
        return Rows(self.X[index], self.y[index])
