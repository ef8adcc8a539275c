"""Each function that states the sensitivity of a release has a name for it, and a test that attacks it.

``python -m tests.architecture.test_releases`` prints the list, with the sensitivities as the code has them.
"""

import ast
import sys
from functools import cache

from tests.docs.test_promises import exists

from .test_architecture import PACKAGE

#: What states a sensitivity.
STATING = {"ReleasedArray", "scalars"}
#: Functions that hand on what others state: the makers of both, and checkpoints.
APART = {"scalars", "module", "_from_bytes"}

OF_STAGES = (
    "tests/unit/learning/test_sensitivities.py::test_no_row_adds_more_than_is_stated_and_its_sums_are_its_own"
)
OF_FITS = "tests/property/test_geometry_neighbours.py::test_no_release_moves_by_more_than_its_sensitivity"
OF_STEPS = (
    "tests/property/test_sensitivity.py::test_removing_a_row_moves_every_sum_by_at_most_its_sensitivity"
)
#: By the function that states its sensitivity: what is released, and the test that tries to break it.
RELEASES = {
    "GradientQuery.step": ("clipped gradients", OF_STEPS),
    "SplitQuery._releases": ("clipped deviations (DOPE), or coordinates and residuals (GEP)", OF_STEPS),
    "TwoPointQuery.step": ("differences of losses", "tests/property/test_module_sensitivity.py"),
    "CandidateQuery._losses": ("losses of candidates", "tests/property/test_module_sensitivity.py"),
    "noisy_columns.histograms": (
        "histograms of columns",
        "tests/property/test_table_neighbours.py::test_the_row_that_moves_most_moves_as_far_as_is_stated",
    ),
    "few_dominate": (
        "look at wide tables",
        "tests/unit/learning/test_columns.py::TestFewThatDominate::test_no_row_adds_more_than_1",
    ),
    "columns_in_other_units": ("check of units", OF_FITS),
    "noisy_columns_of": (
        "knots",
        "tests/property/test_additive_neighbours.py::test_no_release_moves_by_more_than_its_sensitivity",
    ),
    "scores_query": (
        "pairs of columns",
        "tests/unit/additive/test_pairs.py::test_a_row_moves_the_scores_by_no_more_than_stated",
    ),
    "noisy_mean": ("mean", OF_FITS),
    "moments_query": ("directions, and second moment", OF_FITS),
    "counts_query": (
        "counts of classes, of short rows, and of right predictions",
        "tests/unit/learning/test_counting.py::test_a_row_changes_a_count_by_one_and_the_noise_is_that_of_one_row",
    ),
    "noisy_logits": (
        "label shares",
        "tests/unit/learning/test_label_shares.py::test_a_row_moves_the_sums_by_what_is_stated_for_any_labels",
    ),
    "comparison_query": ("comparison of heads", OF_STAGES),
    "at_temperature": ("temperature", OF_STAGES),
    "at_temperature_of_rare": ("temperature of a rare class", OF_STAGES),
    "at_shares": ("mean prediction", OF_STAGES),
    "recalibrated": ("residuals", OF_STAGES),
    "noisy_targets": (
        "scale of the targets",
        "tests/unit/learning/test_targets.py::test_a_row_moves_the_histograms_of_all_targets_by_no_more_than_stated",
    ),
    "noisy_gradient_bound": ("lengths of gradients", OF_FITS),
    "gains_query": ("check of the start, and comparison of regressions", OF_STAGES),
    "noisy_scale": ("scale of weights", OF_FITS),
    "noisy_mean_weight": ("mean weight", OF_FITS),
    "noisy_sum.queries": (
        "sums of a scaler and of scores",
        "tests/property/test_noisy_scaler.py::test_removing_a_row_stays_within_the_bound_and_meets_it",
    ),
    "histograms_of": (
        "histograms of an evaluation",
        "tests/property/test_evaluation_sensitivity.py::test_several_classes",
    ),
    **dict.fromkeys(
        (
            *("Newton.steps", "logistic_steps", "poisson_steps", "poisson_steps.tails", "level"),
            "least_squares_steps",
        ),
        (
            "scores, curvatures, histograms and variances of an inference",
            "tests/property/test_inference_neighbours.py::"
            "test_a_row_that_is_zeroed_out_moves_no_release_by_more_than_its_sensitivity",
        ),
    ),
}


@cache
def stated():
    """The sensitivities that each function of the package states, as text, by its qualified name."""
    found: dict[str, list[str]] = {}

    def visit(node, name):
        for child in ast.iter_child_nodes(node):
            is_named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            if isinstance(child, ast.Call) and getattr(child.func, "id", None) in STATING:
                found.setdefault(name or "module", []).append(ast.unparse(child.args[0]))
            visit(child, f"{name}.{child.name}".lstrip(".") if is_named else name)

    for path in sorted(PACKAGE.rglob("*.py")):
        visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return {name: parts for name, parts in found.items() if name not in APART}


def test_every_release_is_named():
    assert stated().keys() == RELEASES.keys(), "name what is released in RELEASES, with its test"


def test_every_release_has_a_test():
    assert [test for _, test in RELEASES.values() if not exists(test)] == []


if __name__ == "__main__":
    for function, sensitivities in stated().items():
        sys.stdout.write(" | ".join([function, *RELEASES[function], ", ".join(sensitivities)]) + "\n")
