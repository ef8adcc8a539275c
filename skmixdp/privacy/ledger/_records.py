"""Conversion of events to text and back, for storage in a ledger.

An event class is a frozen dataclass with a name given by :func:`register_event`. Its fields are numbers,
text, None, tuples of these, and other events.
"""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from ..._utils.validation import one_line
from ..accounting.events import GaussianEvent, OtherRelease
from ..accounting.selection import SelectionEvent

_Kind = TypeVar("_Kind", bound=type)

#: Registered classes of events, by name.
_KINDS: dict[str, type] = {
    "gaussian": GaussianEvent,
    "other_release": OtherRelease,
    "selection": SelectionEvent,
}


class UnknownKindError(ValueError):
    """A record names an event class that is not registered here: another version may have written it."""


def register_event(name: str) -> Callable[[_Kind], _Kind]:
    """Class decorator that registers a dataclass of events under ``name``, so that ledgers can store them.

    Raises
    ------
    ValueError
        If the name is taken.
    """

    def register(kind: _Kind) -> _Kind:
        if name in _KINDS:
            raise ValueError(f"the event name {name!r} is taken by {_KINDS[name].__name__}; choose another.")
        _KINDS[name] = kind
        return kind

    return register


def event_to_json(event: object) -> str:
    """A registered event as a JSON object; equal events give equal text.

    Raises
    ------
    TypeError
        If its kind is not registered.
    ValueError
        If a number in it is not finite.
    """
    return json.dumps(_encoded(event), sort_keys=True, allow_nan=False, default=_plain)


def event_from_json(text: str) -> Any:
    """The event that :func:`event_to_json` made ``text`` from.

    Raises
    ------
    ValueError
        If the text names a class that is not registered. Also if the text is damaged: not JSON of the right
        form, or with invalid numbers.
    """
    try:
        record = json.loads(text)
        if not isinstance(record, dict):
            raise TypeError("it is no JSON object")
        return _decoded(record)
    except UnknownKindError:
        raise
    # An error of a constructor depends on the event class.
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"the record of an event is damaged ({type(error).__name__}: {one_line(str(error))}); restore "
            "the file that holds it from a copy."
        ) from error


def _encoded(event: object) -> dict[str, Any]:
    name = next((name for name, kind in _KINDS.items() if type(event) is kind), None)
    if name is None:
        raise TypeError(f"no ledger can keep the event {event!r}; register its class with register_event.")
    values = {field.name: vars(event)[field.name] for field in fields(event)}  # type: ignore[arg-type]
    return {"kind": name, "values": values}


def _plain(value: object) -> Any:
    """JSON values for events within events and for NumPy numbers."""
    return value.item() if hasattr(value, "item") else _encoded(value)


def _decoded(value: object) -> Any:
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if not isinstance(value, dict):
        return value
    if value["kind"] not in _KINDS:
        raise UnknownKindError(
            f"the event kind {value['kind']!r} is unknown here; import the module that registers it, or "
            "use the version of skmixdp that wrote it."
        )
    return _KINDS[value["kind"]](**{name: _decoded(entry) for name, entry in value["values"].items()})
