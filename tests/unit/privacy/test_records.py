"""Events as text and back."""

from dataclasses import dataclass

import pytest

from skmixdp.algorithms.modelmix import ModelMixEvent
from skmixdp.privacy import GaussianEvent, SelectionEvent, event_from_json, event_to_json, register_event
from tests.private_names import _records as records


@pytest.fixture
def pair(monkeypatch):
    """A kind of event that holds other events."""
    monkeypatch.setattr(records, "_KINDS", dict(records._KINDS))

    @register_event("pair")
    @dataclass(frozen=True)
    class Pair:
        parts: tuple
        name: str | None = None

    return Pair


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(1 / 3, 7),
        GaussianEvent(1e-120, 7, 0.1, "float"),
        GaussianEvent(2.0, 1, noise="discrete"),
        ModelMixEvent(10.0, 60, 0.5, width=1e30, linf_split=4, conversion="classic"),
        SelectionEvent(2.0, 7.5),
        SelectionEvent(2.0, 3, "discrete"),
    ],
)
def test_events_come_back_as_they_were(event):
    assert event_from_json(event_to_json(event)) == event


def test_events_within_events(pair):
    event = pair((GaussianEvent(1.0, 2), pair((), "inner")), None)
    assert event_from_json(event_to_json(event)) == event


def test_refusals(pair):
    with pytest.raises(ValueError, match="'pair' is taken by Pair"):
        register_event("pair")(int)
    with pytest.raises(TypeError, match="no ledger can keep the event 3"):
        event_to_json(3)
    with pytest.raises(TypeError, match="no ledger can keep the event <object"):
        event_to_json(pair((object(),)))
    with pytest.raises(ValueError, match="not JSON compliant"):
        event_to_json(pair((float("nan"),)))
    with pytest.raises(ValueError, match="kind 'other' is unknown here"):
        event_from_json('{"kind": "other", "values": {}}')


def test_a_kind_of_its_own_does_not_pass_for_its_parent():
    class Special(GaussianEvent):
        pass

    with pytest.raises(TypeError, match="no ledger can keep"):
        event_to_json(Special(1.0, 1))
