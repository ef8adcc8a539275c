"""What is asked of private rows can be sent to where they are, and holds nothing that must stay."""

import pickle

import cloudpickle
import pytest

from skmixdp.components.public import PublicData
from skmixdp.privacy import NoiseSource
from tests.catalog import ALGORITHMS
from tests.conftest import make_problem, train
from tests.private_names import InMemoryRows, training
from tests.rounding import assert_close


class Travelled(InMemoryRows):
    """Rows that answer queries which have been sent and received."""

    def private_sums(self, requests):
        queries = [request.query for request in requests]
        sent = [cloudpickle.dumps((query.points, query.contribute)) for query in queries]
        received = [pickle.loads(message) for message in sent]
        changed = [
            request.with_query(points=points, contribute=contribute)
            for request, (points, contribute) in zip(requests, received, strict=True)
        ]
        return super().private_sums(changed)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_questions_are_the_same_after_a_journey_and_leave_noise_and_public_rows_behind(name, monkeypatch):
    problem = make_problem()
    recipe = problem.recipe(ALGORITHMS[name])
    plan = problem.plan(recipe, n_steps=2)
    heads = []
    for kind in (InMemoryRows, Travelled):
        if kind is Travelled:
            for stays in (NoiseSource, PublicData):
                monkeypatch.setattr(stays, "__reduce_ex__", _must_stay)
        heads.append(train([training(plan, NoiseSource(3))], kind(problem.X, problem.y))[0])
    assert_close(heads[1], heads[0])
    with pytest.raises(AssertionError, match="must stay"):
        cloudpickle.dumps(lambda: plan)


def _must_stay(self, protocol):
    raise AssertionError(f"{type(self).__name__} must stay")
