"""What a search may try."""

from collections.abc import Iterable, Mapping, Sized
from typing import Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

#: Seeds of a draw from distributions; each draw has its own.
_SEEDS = 2**32


class Candidates:
    """Parameter settings: a grid of lists, or distributions to draw from.

    Parameters
    ----------
    space : dict or list of dict
        For each parameter a list of values or an object with ``rvs``, such as the distributions of
        ``scipy.stats``.

    Raises
    ------
    ValueError, TypeError
        If it is neither, or empty.
    """

    def __init__(self, space: Any) -> None:
        parts = [space] if isinstance(space, Mapping) else space
        if not isinstance(parts, (list, tuple)) or not parts or not all(map(_is_part, parts)):
            raise TypeError(
                f"param_grid={space!r} must be a dict, or a list of dicts, from names of parameters to lists "
                "of values or distributions with rvs."
            )
        for part in parts:
            for name, values in part.items():
                if isinstance(values, Sized) and len(values) == 0:
                    raise ValueError(f"param_grid[{name!r}]={values!r} is empty; list at least one value.")
        self._space = [dict(part) for part in parts]
        drawn = any(hasattr(values, "rvs") for part in parts for values in part.values())
        self._grid = None if drawn else ParameterGrid(self._space)

    @property
    def names(self) -> set[str]:
        """The parameters that vary."""
        return {name for part in self._space for name in part}

    @property
    def size(self) -> int | None:
        """Number of settings; None where some are drawn from distributions."""
        return None if self._grid is None else len(self._grid)

    def every(self) -> list[dict[str, Any]]:
        """All settings of a grid."""
        assert self._grid is not None
        return list(self._grid)

    def at(self, u: float) -> dict[str, Any]:
        """The setting at a uniform number in [0, 1): each of a grid is as likely as any other."""
        if self._grid is not None:
            setting: dict[str, Any] = self._grid[int(u * len(self._grid))]
            return setting
        (setting,) = ParameterSampler(self._space, 1, random_state=int(u * _SEEDS))
        return setting


def _is_part(part: Any) -> bool:
    return isinstance(part, Mapping) and all(
        hasattr(values, "rvs") or (isinstance(values, Iterable) and not isinstance(values, str))
        for values in part.values()
    )
