"""Which tests of a product of parameters are run by `make test`.

A product of many parameters has far more cases than behaviours: a source of rows does not know which
algorithm asks it. Tests of such a product have the mark ``covering``. Then `make test` runs cases enough to
have every value of every parameter once, and every combination of the parameters that the mark names::

    @pytest.mark.covering("source dtype", "source algorithm")

The other cases are marked ``slow``, so `make test-all` runs the whole product. `make cores` runs such sets of
all products, marked or not, with no combinations.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby
from typing import Any

import pytest


def covering_set(cases: Sequence[Mapping[str, Hashable]], together: Sequence[Sequence[str]] = ()) -> set[int]:
    """Numbers of cases with every value of each parameter, and every combination of those ``together``."""
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


def redundant(
    test: Any,
    given: Sequence[Any],
    params: Sequence[Mapping[str, Any]],
    combined: Sequence[str],
    *,
    apart: bool = False,
) -> list[Any]:
    """Those of the given cases, with these parameters, that the covering set of a test leaves out.

    The set has the combinations of the mark, unless values stand ``apart``.
    """
    named = {name for names in combined for name in names.split()}
    together = [] if apart else [names.split() for names in combined]
    # Parameters of one list of values are one parameter, unless the mark names them.
    for names, *_ in (mark.args for mark in test.iter_markers("parametrize")):
        group = names.replace(",", " ").split() if isinstance(names, str) else names
        if named.isdisjoint(group):
            together.append(group)
    # Cases of one value hold the same object, which need not be hashable.
    chosen = covering_set([{name: id(value) for name, value in case.items()} for case in params], together)
    return [case for number, case in enumerate(given) if number not in chosen]


def leave_out_the_rest(metafunc: pytest.Metafunc) -> None:
    """Do not even make the cases of a test that are redundant, which takes longer than to choose them."""
    test = metafunc.definition
    all_tests = metafunc.config.getoption("covering", default=False)
    mark = _mark_of(test) or (pytest.mark.covering() if all_tests else None)
    if not mark or _excepted(test.iter_markers()):
        return
    given = [call for call in metafunc._calls if not _excepted(call.marks)]
    params = [call.params for call in given]
    left_out = {id(call) for call in redundant(test, given, params, mark.args, apart=all_tests)}
    metafunc._calls = [call for call in metafunc._calls if id(call) not in left_out]


def _mark_of(test: Any) -> Any:
    return test.get_closest_marker("covering")


def _excepted(marks: Iterable[pytest.Mark]) -> bool:
    """Whether a case covers nothing, and stays as it is: it may skip, or is slow already."""
    return any(mark.name in ("skip", "skipif", "slow") for mark in marks)


def mark_the_rest_slow(items: Sequence[pytest.Item]) -> None:
    """Mark as slow what is not in the covering set of each test that has the mark.

    Cases that may skip, and those that are slow already, cover nothing and stay as they are.
    """
    marked = [item for item in items if item.get_closest_marker("covering")]
    for _, group in groupby(marked, key=lambda item: item.nodeid.split("[")[0]):
        cases = [item for item in group if not _excepted(item.iter_markers())]
        params = [case.callspec.params for case in cases]
        for case in redundant(cases[0], cases, params, _mark_of(cases[0]).args) if cases else ():
            case.add_marker(pytest.mark.slow)
