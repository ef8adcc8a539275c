"""What ``--encode FILE.json`` declares of columns, for :class:`~skmixdp.preprocessing.TableEncoder`."""

from pathlib import Path
from typing import Any

from ..estimators import Typical
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
    """Bounds, categories and kinds by column, for ``columns`` of the encoder, which checks them."""
    where = f"--encode {path}"
    parts = read_json(path, where, f"write it {_FORM}")
    if not isinstance(parts, dict) or not parts or set(parts) - set(_PARTS):
        raise InputError(
            f"{where} must have the keys {', '.join(_PARTS)}, or some of them; write it {_FORM}."
        )
    if not all(isinstance(part, dict) for part in parts.values()) or not any(parts.values()):
        raise InputError(f"{where} must map columns to bounds, to values and to kinds; write it {_FORM}.")
    columns: dict[str, Any] = {}
    for part in _PARTS:
        for name, value in parts.get(part, {}).items():
            if name in columns:
                raise InputError(f"{where} names {name!r} twice; keep one of both.")
            is_pair = part == "numbers" and isinstance(value, list)
            columns[name] = tuple(value) if is_pair else value
    return columns


def read_scales(path: Path) -> dict[str, Any]:
    """Typical value and usual distance by column, from a JSON file."""
    form = 'write it like {"age": [45, 15]}'
    scales = read_json(path, f"--scale {path}", form)
    pairs = scales.values() if isinstance(scales, dict) else ()
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError(f"--scale {path} must map columns to a typical value and a spread; {form}.")
    return {name: Typical(*pair) for name, pair in scales.items()}
