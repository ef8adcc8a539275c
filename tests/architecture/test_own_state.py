"""Every public function and method that reads private rows does so in the library's own state of NumPy."""

import ast
import importlib
import inspect
import textwrap

import pytest

MODULES = ("", ".audit", ".datasets", ".estimators", ".features", ".inspection", ".model_selection")
MODULES += (".additive", ".inference", ".preprocessing", ".privacy")
#: Arguments that may be private rows or belong to them, or files of them.
PRIVATE = {"X", "y", "groups", "sample_weight", "paths"}

#: What other functions do, by name: each of them works in the library's own state.
THROUGH = {
    "_fit_together": "fits of several heads",
    "fit_one": "fits of heads and modules",
    "_noisy_sums": "noisy scores",
    "_outputs": "predictions, which are of NumPy alone up to here",
    "decision_function": "predictions",
    "_mapped": "transforms of wrapped transformers",
    "_without_quotes": "transforms of scikit-learn's Normalizer",
    "extract": "features of images and texts",
    "private_confusion": "noisy scores",
}
#: Entries that read no private rows by themselves, and why.
APART = {
    "fit_transform": "fit, and then transform",
    "fit_predict": "fit, and then predict",
    "score": "an exact score of predictions, which no guarantee covers",
    "FrozenFeatures.fit": "checks parameters alone",
    "audit_epsilon": "fits an estimator to rows of its own, which are no secret",
    "public_cross_val_score": "fits and scores of estimators",
    "RowFiles.private_rows": "within a fit",
    "TableEncoder.fit": "reads public rows, and of private ones the names of columns",
}


def entries():
    """Names and functions of the library's own public functions and methods with an argument of rows."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"skmixdp{name}")
        for public in module.__all__:
            value = getattr(module, public)
            members = (
                [(f"{public}.{each}", getattr(value, each, None)) for each in dir(value) if each[0] != "_"]
                if inspect.isclass(value)
                else [(public, value)]
            )
            for label, function in members:
                function = inspect.unwrap(function) if callable(function) else None
                if not inspect.isroutine(function):
                    continue
                code = getattr(function, "__func__", function)
                own = (getattr(code, "__module__", "") or "").startswith("skmixdp.")
                if own and PRIVATE & set(inspect.signature(code).parameters):
                    found[label] = code
    return found


ENTRIES = entries()


def works_in_own_state(function):
    """Whether the function is decorated, has a with statement, or leaves all to a function that does."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    names = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(tree)}
    return bool(names & {"own_state", *THROUGH})


def test_the_entries_are_those_that_users_call():
    wanted = {
        *("MixedDPLogisticRegression.fit", "MixedDPRidge.private_score", "ZerothOrderDPModuleClassifier.fit"),
        *("PrivateSearchCV.fit", "NoisyScaler.transform"),
        *("PublicOnly.transform", "PrivatePipeline.fit", "private_evaluation", "fit_many"),
    }
    assert wanted <= set(ENTRIES), wanted - set(ENTRIES)
    assert len(ENTRIES) > 60


@pytest.mark.parametrize("entry", ENTRIES)
def test_it_reads_rows_in_the_librarys_own_state(entry):
    apart = {entry, entry.split(".")[-1]} & set(APART)
    kind = ENTRIES[entry].__qualname__  # of the class that defines it
    assert apart or kind in APART or works_in_own_state(ENTRIES[entry]), (
        f"{entry} reads rows in whatever state the user has set; put it under own_state()"
    )


def test_one_that_is_left_out_would_be_found():
    def transform(self, X):
        return X / X.std()

    assert not works_in_own_state(transform)
