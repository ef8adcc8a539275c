"""Every document on a fit with a known leak begins with NO GUARANTEE and names the leak."""

import ast
import html
import inspect
import json
import pickle
import pkgutil
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy.stats import uniform
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import skmixdp
from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.inspection import ensemble_report, model_card
from skmixdp.model_selection import PrivateSearchCV, WithPublicRows, public_score
from skmixdp.preprocessing import NoisyScaler, RowNormalizer
from skmixdp.privacy import PrivacyLedger
from tests.private_names import main

pytestmark = pytest.mark.filterwarnings("ignore::skmixdp.exceptions.PrivacyLeakWarning")

PACKAGE = Path(skmixdp.__file__).parent
X, Y = load_iris(return_X_y=True)
NEAR = {"epsilon": 1.0, "delta": 1e-3}
CLASSES = "the classes were read from the private labels"
SCALER = "StandardScaler: the mean and standard deviation of each column"
CHOICE = "GridSearchCV: the scores of candidates on private rows, and the choice made by them"
SMALLEST = "MinMaxScaler: the smallest and largest"
DROPPED = ": drops fits, each of which spends its budget, so that only a ledger counts them"


@dataclass
class Fitted:
    """A fitted object, what states the guarantee in it, and the ledger that was charged."""

    whole: Any
    stated: Any
    ledger: Any


def head(people, kind=MixedDPLogisticRegression, algorithm="noisy-gd", **parameters):
    known = {"target_center": 1, "target_scale": 1} if kind is MixedDPRidge else {"classes": [0, 1, 2]}
    return kind(algorithm, ledger=people, **(NEAR | known | parameters))


def search_of(estimator, people, **parameters):
    settings = {"epsilon": 2.0, "delta": 1e-3, "ledger": people, "strategy": "grid"}
    return PrivateSearchCV(estimator, {}, **(settings | parameters))


def with_a_candidate_that_loses(people):
    """The winner is sound, but it was chosen next to another."""
    pipe = make_pipeline(RowNormalizer(), head(None), transform_input=["X_pub"])
    search = search_of(pipe, people, scoring=lambda pipe, *_: float("MinMaxScaler" not in repr(pipe)))
    search.set_params(param_grid={"rownormalizer": [RowNormalizer(), MinMaxScaler()]})
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, Y, (X[::9],), (Y[::9],))
    assert search.best_index_ == 0
    return search


def with_candidates_by_chance(people):
    """Which candidates were drawn stays secret, and so what one of them leaks is said of all."""
    pipe = make_pipeline(FunctionTransformer(), head(None))
    grid = [{"functiontransformer": [MinMaxScaler()]}, {"mixeddplogisticregression__l2": uniform(0, 1)}]
    return search_of(pipe, people, strategy="random", n_trials=2).set_params(param_grid=grid).fit(X, Y)


class Wrapper(BaseEstimator):
    """Shows the report of what it fits, and does what no rule knows."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        self.estimator_ = clone(self.estimator).fit(X / np.abs(X).max(), y)
        self.privacy_ = self.estimator_.privacy_
        return self


def last(pipe):
    return pipe[-1]


def itself(whole):
    return whole


#: How something is fitted with a ledger, where it states its guarantee, and the leak that is to be named. If
#: nothing in it states a false guarantee by itself, only documents on the whole are looked at.
LEAKS = {
    "classes": (lambda people: head(people, classes=None).fit(X, Y), itself, CLASSES),
    "a scaler": (lambda people: make_pipeline(StandardScaler(), head(people)).fit(X, Y), last, SCALER),
    "a scaler before a regression": (
        lambda people: make_pipeline(StandardScaler(), head(people, MixedDPRidge)).fit(X, Y),
        last,
        SCALER,
    ),
    "a scaler within public rows": (
        lambda people: WithPublicRows(make_pipeline(StandardScaler(), head(people))).fit(X, Y),
        lambda whole: whole.estimator_[-1],
        SCALER,
    ),
    "a scaler before a noisy one": (
        lambda people: make_pipeline(
            StandardScaler(), NoisyScaler(bounds=(-3, 3), delta=1e-3, ledger=people)
        ).fit(X),
        last,
        SCALER,
    ),
    "a search": (
        lambda people: GridSearchCV(head(people), {"l2": [0.0, 0.1]}, cv=2).fit(X, Y),
        lambda whole: whole.best_estimator_,
        CHOICE,
    ),
    "a threshold": (
        lambda people: TunedThresholdClassifierCV(head(people, classes=[False, True]), cv=2).fit(X, Y == 1),
        lambda whole: whole.estimator_,
        "TunedThresholdClassifierCV: a threshold tuned on private rows",
    ),
    "a calibration": (
        lambda people: CalibratedClassifierCV(head(people), cv=2).fit(X, Y),
        lambda whole: whole.calibrated_classifiers_[0].estimator,
        "CalibratedClassifierCV: a calibration of the scores by private labels",
    ),
    "a seed": (lambda people: head(people, random_state=0).fit(X, Y), itself, " from a seed"),
    "a private search": (
        lambda people: search_of(head(None, classes=None), people).fit(X, Y),
        itself,
        CLASSES,
    ),
    "a random private search": (
        lambda people: search_of(head(None, classes=None), people, strategy="random").fit(X, Y),
        itself,
        CLASSES,
    ),
    "a private search over a scaler": (
        lambda people: search_of(make_pipeline(StandardScaler(), head(None)), people).fit(X, Y),
        itself,
        SCALER,
    ),
    "a candidate that loses": (with_a_candidate_that_loses, itself, SMALLEST),
    "the winner beside a candidate that loses": (
        with_a_candidate_that_loses,
        lambda whole: whole.best_estimator_[-1],
        SMALLEST,
    ),
    "a candidate that may be drawn": (with_candidates_by_chance, itself, SMALLEST),
    "a wrapper that nobody knows": (
        lambda people: Wrapper(head(people)).fit(X, Y),
        None,
        "Wrapper: whatever its fit stores",
    ),
    "fits that are dropped": (
        lambda people: StackingClassifier([("a", head(people))], head(people), cv=KFold(2)).fit(X, Y),
        None,
        "StackingClassifier" + DROPPED,
    ),
    "columns that are eliminated": (
        lambda people: RFE(head(people), n_features_to_select=3).fit(X, Y),
        None,
        "RFE" + DROPPED,
    ),
    "a search by public scores": (
        lambda people: GridSearchCV(
            head(people), {}, scoring=public_score(X[::9], Y[::9]), cv=[(range(len(X)), [0])]
        ).fit(X, Y),
        None,
        "GridSearchCV" + DROPPED,
    ),
    "a member without a report": (
        lambda people: VotingClassifier(
            [("a", head(people)), ("b", FrozenEstimator(VotingClassifier([("c", head(people))]).fit(X, Y)))]
        ).fit(X, Y),
        None,
        "estimators_[1] may have been fitted to private rows without noise",
    ),
    "a leak in a member that is frozen": (
        lambda people: VotingClassifier(
            [("a", FrozenEstimator(head(people, classes=None).fit(X, Y))), ("b", head(people))]
        ).fit(X, Y),
        lambda whole: whole.estimators_[0].estimator,
        CLASSES,
    ),
    "a bootstrap": (
        lambda people: BaggingClassifier(WithPublicRows(head(people)), 2, random_state=1).fit(X, Y),
        lambda whole: whole.estimators_[0].estimator_,
        "BaggingClassifier: repeats private rows in one fit, while the guarantee is for one row",
    ),
}

SOUND = {
    "a head": (lambda people: head(people).fit(X, Y), itself),
    "classes of public rows": (lambda people: head(people, classes=None).fit(X, Y, X[::9], Y[::9]), itself),
    "a regression": (lambda people: head(people, MixedDPRidge).fit(X, Y), itself),
    "a pipeline": (lambda people: make_pipeline(FunctionTransformer(), head(people)).fit(X, Y), last),
    "a private search": (lambda people: search_of(head(None), people).fit(X, Y), itself),
}


def texts(value):
    """All texts in what JSON holds, in their order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from texts(entry)


def of_json(text):
    return list(texts(json.loads(text)))


def of_html(page):
    """What a reader of a page sees, line by line."""
    page = re.sub(r"<(style|script|head)\b.*?</\1>", "", page, flags=re.DOTALL)
    lines = [" ".join(html.unescape(line).split()) for line in re.split(r"<(?!/?b>)[^>]*>", page)]
    return [re.sub("</?b>", "", line) for line in lines if line]


def of_markdown(text):
    return [re.sub(r"\\(.)", r"\1", line.strip("*")) for line in text.splitlines() if line]


def saved(found, folder):
    if not hasattr(found.stated, "save"):
        pytest.skip("only estimators are saved")
    if isinstance(found.stated, FrozenEstimator):
        pytest.skip("its estimator is saved")
    found.stated.save(folder / "m.safetensors")
    return folder / "m.safetensors"


def onnx_of(found):
    if not hasattr(found.stated, "to_onnx") or isinstance(found.stated, FrozenEstimator):
        pytest.skip("only heads are exported")
    pytest.importorskip("onnx")
    (entry,) = found.stated.to_onnx().metadata_props
    return entry.value


def printed(capsys, *args):
    assert main(["report", *map(str, args)]) == 0
    return capsys.readouterr().out


#: The lines of each document.
STATEMENTS = {
    "text": lambda f, *_: str(f.stated.privacy_).splitlines(),
    "HTML": lambda f, *_: of_html(f.stated.privacy_._repr_html_()),
    "JSON": lambda f, *_: of_json(f.stated.privacy_.to_json()),
    "dict": lambda f, *_: list(texts(f.stated.privacy_.to_dict())),
    "pickle": lambda f, *_: str(pickle.loads(pickle.dumps(f.stated.privacy_))).splitlines(),
    "saved": lambda f, folder, _: str(skmixdp.load(saved(f, folder)).privacy_).splitlines(),
    "notebook": lambda f, *_: of_html(f.stated._repr_html_()),
    "ONNX": lambda f, *_: of_json(onnx_of(f)),
    "report": lambda f, folder, capsys: printed(capsys, saved(f, folder)).splitlines(),
    "report --json": lambda f, folder, capsys: of_json(printed(capsys, saved(f, folder), "--json")),
    "report --html": lambda f, folder, capsys: of_html(printed(capsys, saved(f, folder), "--html")),
    "ledger": lambda f, *_: str(f.ledger.report()).splitlines(),
    "short ledger": lambda f, *_: str(f.ledger.report(charges="failed")).splitlines(),
    "printed ledger": lambda f, *_: str(f.ledger.ledger).splitlines(),
    "HTML of a ledger's data set": lambda f, *_: of_html(f.ledger._repr_html_()),
    "HTML of a ledger": lambda f, *_: of_html(f.ledger.report()._repr_html_()),
    "page of a ledger": lambda f, *_: of_html(f.ledger.report().to_html()),
    "JSON of a ledger": lambda f, *_: of_json(f.ledger.report().to_json()),
    "report of a ledger": lambda f, _, capsys: printed(capsys, f.ledger.ledger.path).splitlines(),
}
OF_THE_WHOLE = {
    "card": lambda f, *_: of_markdown(model_card(f.whole).to_markdown()),
    "card of what states it": lambda f, *_: of_markdown(str(model_card(f.stated or f.whole))),
    "card in a notebook": lambda f, *_: of_markdown(model_card(f.whole)._repr_markdown_()),
    "dict of a card": lambda f, *_: list(texts(model_card(f.whole).to_dict())),
    "ensemble": lambda f, *_: str(ensemble_report(f.whole)).splitlines(),
    "ensembles": lambda f, *_: str(ensemble_report([f.whole])).splitlines(),
    "HTML of an ensemble": lambda f, *_: of_html(ensemble_report(f.whole)._repr_html_()),
    "JSON of an ensemble": lambda f, *_: of_json(ensemble_report(f.whole).to_json()),
}
DOCUMENTS = STATEMENTS | OF_THE_WHOLE


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes each fit once."""
    kept = {}

    def fit(name, make, stated):
        if name not in kept:
            ledger = PrivacyLedger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
            people = ledger.add_dataset("people", epsilon=100.0, delta=1e-3)
            whole = make(people)
            kept[name] = Fitted(whole, None if stated is None else stated(whole), people)
        return kept[name]

    return fit


@pytest.mark.covering("leak", "document")
@pytest.mark.parametrize(
    ("leak", "document"),
    [(leak, one) for leak in LEAKS for one in (OF_THE_WHOLE if LEAKS[leak][1] is None else DOCUMENTS)],
)
def test_the_first_line_says_no_guarantee_and_names_the_leak(leak, document, made, tmp_path, capsys):
    make, stated, words = LEAKS[leak]
    first, *others = DOCUMENTS[document](made(leak, make, stated), tmp_path, capsys)
    assert first.startswith("NO GUARANTEE: ") and words in first
    claims = [line for line in others if re.search("differential privacy|differentially private", line)]
    assert [line for line in claims if not re.search("NO GUARANTEE|NOT PRIVATE", line)] == []


#: The first line of each document as it was before it knew of leaks.
FIRST = {
    **dict.fromkeys(("text", "pickle", "saved", "report", "HTML"), "Privacy report"),
    "report --html": "",  # the name of the model
    **dict.fromkeys([name for name in DOCUMENTS if "ledger" in name], "Privacy ledger"),
    **dict.fromkeys([name for name in DOCUMENTS if "ensemble" in name], "Privacy report of an ensemble"),
    **dict.fromkeys(("card", "card of what states it", "card in a notebook"), "# "),
    # The first entry is empty.
    **dict.fromkeys([name for name in DOCUMENTS if re.search("(?i)json|dict|onnx", name)], ""),
    "notebook": "",
}


@pytest.mark.covering
@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("name", SOUND)
def test_without_a_known_leak_documents_are_as_they_were(name, document, made, tmp_path, capsys):
    first, *others = DOCUMENTS[document](made("sound " + name, *SOUND[name]), tmp_path, capsys)
    assert first.startswith(FIRST[document])
    assert not re.search("NO GUARANTEE|NOT PRIVATE", "\n".join([first, *others]))


def test_no_known_leak_is_stated_as_proof(made):
    """Documents say nothing of leaks where none is known, and cards say that there may be others."""
    found = made("sound a head", *SOUND["a head"])
    for document in (str(found.stated.privacy_), str(ensemble_report(found.whole))):
        assert "leak" not in document
    assert "the leaks that are known; there may be others" in model_card(found.whole).to_markdown()


def test_the_box_of_a_search_before_its_fit_names_what_its_parameters_tell():
    search = search_of(make_pipeline(StandardScaler(), head(None)), None)
    first, *others = of_html(search._repr_html_())
    assert first == f"NO GUARANTEE: {SCALER}"
    (promise,) = (i for i, line in enumerate(others) if line.startswith("A fit will be (2.0, 0.001)"))
    assert others[promise - 1] == f"NO GUARANTEE: {SCALER}. Without the leaks:"


def test_the_box_of_a_head_before_its_fit_says_what_undeclared_classes_do():
    words = "Without public rows, it reads the classes from private labels"
    assert words in head(None, classes=None)._repr_html_()
    assert words not in head(None)._repr_html_() + MixedDPRidge()._repr_html_()


def test_fit_of_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("rows.npz", X=X, y=Y)
    args = ["fit", "--private", "rows.npz", "--delta", "1e-3", "--out", "m.safetensors", "--force"]
    for ending in ("json", "html"):
        assert main([*args, "--report", f"r.{ending}"]) == 0
        assert capsys.readouterr().out.startswith(f"NO GUARANTEE: {CLASSES}\nPrivacy report\n")
    assert of_json(Path("r.json").read_text())[0] == f"NO GUARANTEE: {CLASSES}"
    assert of_html(Path("r.html").read_text().split("\n", 1)[1])[0] == f"NO GUARANTEE: {CLASSES}"


# -- documents that are added later ---------------------------------------------------------

#: Methods that write a document.
WRITERS = {"__str__", "_html_repr", "_repr_html_", "_repr_markdown_", "to_html", "to_json", "to_markdown"}
#: Classes that write something else.
OTHERS = {
    "PipelineReport": "it lists the leaks themselves",
    "Finding": "it is one of them",
    "Estimate": "it is a number of an evaluation, whose text has the line",
    "AuditResult": "it states what an attack found, next to the claim that it tests",
    "MembershipResult": "it states what an attack found",
    "StoredPath": "it is the address of a file",
    "TableColumns": "it is what public rows tell of the columns",
}


def classes():
    for module in pkgutil.walk_packages(skmixdp.__path__, "skmixdp."):
        try:
            found = vars(import_module(module.name)).values()
        except ImportError:  # of an extra that is not installed
            continue
        yield from (one for one in found if inspect.isclass(one) and one.__module__ == module.name)


def test_whatever_writes_a_document_knows_of_leaks():
    writing = {
        one for one in classes() if WRITERS & set(vars(one)) and not issubclass(one, (Exception, Warning))
    }
    knowing = {one for one in writing if hasattr(one, "no_guarantee") or hasattr(one, "_known_leaks")}
    fields = {one for one in writing if "no_guarantee" in getattr(one, "__dataclass_fields__", {})}
    assert {one.__name__ for one in writing - knowing - fields} == set(OTHERS)


def test_nothing_else_words_a_guarantee():
    """A text that claims differential privacy, and is no documentation."""
    claiming = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        documented = [node for node in nodes if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        words = {node.value for node in nodes if isinstance(node, ast.Constant)}
        words -= {ast.get_docstring(node, clean=False) for node in documented}
        if any(re.search("differential privacy|differentially|-private", str(word)) for word in words):
            claiming.add(path.relative_to(PACKAGE).as_posix())
    assert claiming == {
        # Flags and help texts.
        *("_cli/arguments.py", "_cli/evaluate.py", "_cli/fit.py", "_cli/infer.py", "_cli/main.py"),
        "_cli/rows.py",
        "inspection/_ensembles.py",
        "model_selection/_search/private_search.py",  # a warning in the report of the winner
        "inspection/_guarantee_box.py",
        "privacy/ledger/_ledger_report.py",
        "privacy/report.py",
    }
