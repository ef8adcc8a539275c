"""What ``--encode FILE.json`` declares of columns, for :class:`~skmixdp.preprocessing.TableEncoder`."""

from pathlib import Path
from typing import Any

from .._utils.validation import COUNT, as_float
from ..preprocessing._cells import KINDS
from ..preprocessing._one_cell import text_of
from .files import read_json
from .messages import InputError

_FORM = (
    'like {"numbers": {"age": [0, 120]}, "categories": {"city": ["Bonn", "Ulm"]}, "kinds": {"born": "date"}}'
)
#: The flag for what is known of columns.
SCALE_FLAG = {
    "--scale FILE.json": 'what is known of columns, from prior knowledge: {"age": [45, 15]} for a typical '
    "value and the usual distance from it"
}
_PARTS = ("numbers", "categories", "kinds")


def declared_columns(path: Path) -> dict[str, Any]:
    """Bounds, categories and kinds by column, for the parameter ``columns`` of the encoder."""
    where = f"--encode {path}"
    parts = read_json(path, where, f"write it {_FORM}")
    if not isinstance(parts, dict) or not parts or set(parts) - set(_PARTS):
        raise InputError(
            f"{where} must have the keys {', '.join(_PARTS)}, or some of them; write it {_FORM}."
        )
    if not all(isinstance(part, dict) for part in parts.values()) or not any(parts.values()):
        raise InputError(f"{where} must map columns to bounds, to values and to kinds; write it {_FORM}.")
    columns: dict[str, Any] = {}
    for part, read in (("numbers", _bounds), ("categories", _values), ("kinds", _kind)):
        for name, value in parts.get(part, {}).items():
            if name in columns:
                raise InputError(f"{where} names {name!r} twice; keep one of both.")
            columns[name] = read(value, name, where)
    return columns


def _bounds(value: object, name: str, where: str) -> tuple[float, float]:
    pair = value if isinstance(value, list) and len(value) == 2 else [None, None]
    low, high = (as_float(bound) for bound in pair)
    if low is None or high is None or not -1e300 < low < high < 1e300:
        raise InputError(f"{where} must give {name!r} two bounds, the lower one first; write it {_FORM}.")
    return low, high


def _values(value: object, name: str, where: str) -> list[Any]:
    listed = value if isinstance(value, list) else []
    texts = [text for element in listed if (text := text_of(element)) is not None]
    if not texts or len(set(texts)) < len(listed):
        raise InputError(f"{where} must give {name!r} a list of distinct values; write it {_FORM}.")
    return listed


def _kind(value: object, name: str, where: str) -> Any:
    if COUNT.admits(value) or (isinstance(value, str) and "%" in value):
        return value  # lists of this length, or dates of this format
    if value not in KINDS:
        raise InputError(f"{where} must give {name!r} one of the kinds {', '.join(KINDS)}; write it {_FORM}.")
    return value


def read_scales(path: Path) -> dict[str, Any]:
    """Typical value and usual distance by column, from a JSON file."""
    form = 'write it like {"age": [45, 15]}'
    scales = read_json(path, f"--scale {path}", form)
    if not isinstance(scales, dict) or not scales:
        raise InputError(f"--scale {path} must map columns to a typical value and a spread; {form}.")
    return scales
