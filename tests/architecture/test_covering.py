"""The cases of a product that `make test` runs have every value, and the combinations that are asked for."""

from itertools import product

import pytest

from tests.covering import covering_set, mark_the_rest_slow, redundant

CASES = [dict(zip("abc", values, strict=True)) for values in product(range(4), range(3), range(2))]


@pytest.mark.parametrize("together", [[], ["ab"], ["ab", "bc"], ["abc"]])
def test_all_that_is_asked_for_is_covered(together):
    chosen = [CASES[number] for number in covering_set(CASES, together)]
    for group in [*"abc", *together]:
        seen = {tuple(case[name] for name in group) for case in chosen}
        assert seen == {tuple(case[name] for name in group) for case in CASES}


def test_few_cases_do():
    assert len(covering_set(CASES)) == 4
    assert len(covering_set(CASES, ["ab", "bc"])) == 12
    assert len(covering_set(CASES, ["abc"])) == len(CASES)


def test_values_are_taken_about_equally_often():
    cases = [{"a": a, "b": b} for a, b in product(range(12), range(3))]
    chosen = [cases[number]["b"] for number in covering_set(cases)]
    assert [chosen.count(b) for b in range(3)] == [4, 4, 4]


def test_a_product_with_gaps_is_covered_by_the_cases_that_there_are():
    cases = [case for case in CASES if (case["a"], case["b"]) != (0, 0)]
    chosen = [cases[number] for number in covering_set(cases, ["ab"])]
    assert len({(case["a"], case["b"]) for case in chosen}) == 11


def test_a_name_that_no_case_has_is_an_error():
    with pytest.raises(ValueError, match=r"no case has the parameters \['d'\]"):
        covering_set(CASES, ["ad"])


def test_the_rest_is_slow_and_what_may_skip_covers_nothing(pytester_items):
    mark_the_rest_slow(pytester_items)
    kept = [item.name for item in pytester_items if not item.get_closest_marker("slow")]
    assert kept == [
        *("test[0-x]", "test[1-y]", "test[z-x]", "test[z-y]", "test_alone"),
        *(f"test_pairs[{first}-{second}-x]" for first, second in ("11", "12", "21")),
        *(f"test_list[{first}-{second}]" for first, second in ("11", "12", "21", "22")),
    ]


def test_apart_each_value_of_a_list_of_several_parameters_is_taken_once(pytester_items):
    of_lists = [item for item in pytester_items if item.name.startswith("test_list")]
    params = [item.callspec.params for item in of_lists]
    left_out = {
        apart: redundant(of_lists[0], of_lists, params, ["one two"], apart=apart) for apart in (False, True)
    }
    assert [len(of_lists) - len(items) for items in left_out.values()] == [4, 2]


@pytest.fixture
def pytester_items(tmp_path, request):
    """Tests with two parameters, one of whose values may skip, as pytest collects them."""
    path = tmp_path / "test_product.py"
    path.write_text(
        "import pytest\n"
        "may_skip = pytest.param('z', marks=pytest.mark.skipif(True, reason=''))\n"
        "@pytest.mark.covering\n"
        "@pytest.mark.parametrize('a', ['x', 'y'])\n"
        "@pytest.mark.parametrize('n', [0, 1, may_skip])\n"
        "def test(n, a): pass\n"
        "def test_alone(): pass\n"
        "@pytest.mark.covering\n"
        "@pytest.mark.parametrize('a', ['x'])\n"
        "@pytest.mark.parametrize(('one', 'two'), [(1, 1), (1, 2), (2, 1)])\n"
        "def test_pairs(one, two, a): pass\n"
        "@pytest.mark.parametrize(('one', 'two'), [(1, 1), (1, 2), (2, 1), (2, 2)])\n"
        "def test_list(one, two): pass\n"
    )
    module = pytest.Module.from_parent(request.session, path=path)
    return list(request.session.genitems(module))
