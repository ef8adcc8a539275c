"""Which tests of a product of parameters are run by `make test`.

A product of many parameters has far more cases than behaviours: a source of rows does not know which
algorithm asks it. Tests of such a product have the mark ``covering``. Then `make test` runs cases enough to
have every value of every parameter once, and every combination of the parameters that the mark names::

    @pytest.mark.covering("source dtype", "source algorithm")

The other cases are marked ``slow``, so `make test-all` runs the whole product.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby

import pytest


def covering_set(cases: Sequence[Mapping[str, Hashable]], together: Sequence[Sequence[str]] = ()) -> set[int]:
    """Numbers of cases that have every value of each parameter, and every combination of those ``together``.

    Greedy: the next case is one of those that add most, of these one with values that were taken least often.
    """
    names = {name for case in cases for name in case}
    if unknown := {name for group in together for name in group} - names:
        raise ValueError(f"no case has the parameters {sorted(unknown)}")
    groups = [*((name,) for name in sorted(names)), *map(tuple, together)]
    terms = [
        {(group, tuple(case[name] for name in group)) for group in groups if set(group) <= set(case)}
        for case in cases
    ]
    left = set().union(*terms)
    taken: Counter[tuple[str, Hashable]] = Counter()
    chosen = set()

    def rank(number: int) -> tuple[int, int, int]:
        return -len(terms[number] & left), sum(taken[term] for term in cases[number].items()), number

    # Ranks only get worse, so a case that stays first after it was ranked anew is the best of all.
    waiting = sorted(map(rank, range(len(cases))))
    while left:
        first = rank(heappop(waiting)[-1])
        if waiting and first > waiting[0]:
            heappush(waiting, first)
            continue
        number = first[-1]
        chosen.add(number)
        taken.update(cases[number].items())
        left -= terms[number]
    return chosen


def mark_the_rest_slow(items: Sequence[pytest.Item]) -> None:
    """Mark as slow what is not in the covering set of each test that has the mark.

    Cases that may skip, and those that are slow already, cover nothing and stay as they are.
    """
    marked = [item for item in items if item.get_closest_marker("covering")]
    for _, group in groupby(marked, key=lambda item: item.nodeid.split("[")[0]):
        cases = [
            item
            for item in group
            if not any(item.get_closest_marker(name) for name in ("skip", "skipif", "slow"))
        ]
        if not cases:
            continue
        mark = cases[0].get_closest_marker("covering")
        together = [names.split() for names in mark.args]
        named = {name for group in together for name in group}
        # Parameters of one list of values are one parameter, unless the mark names them.
        for names, *_ in (given.args for given in cases[0].iter_markers("parametrize")):
            group = names.replace(",", " ").split() if isinstance(names, str) else names
            if named.isdisjoint(group):
                together.append(group)
        # Cases of one value hold the same object, which need not be hashable.
        values = [{name: id(value) for name, value in case.callspec.params.items()} for case in cases]
        chosen = covering_set(values, together)
        for number, case in enumerate(cases):
            if number not in chosen:
                case.add_marker(pytest.mark.slow)
