"""Cards of fitted models."""

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skmixdp import MixedDPLogisticRegression
from skmixdp.inspection import model_card
from skmixdp.model_selection import PrivateSearchCV

X, Y = load_iris(return_X_y=True)
X_PUB, Y_PUB, X, Y = X[::5], Y[::5], X[1::5], Y[1::5]


@pytest.fixture(scope="module")
def head():
    return MixedDPLogisticRegression("noisy-gd", epsilon=1.0, delta=1e-3).fit(X, Y, X_PUB, Y_PUB)


def test_a_card_states_guarantee_data_assumptions_and_metrics(head):
    card = model_card(
        head,
        title="Iris",
        description="Tells three species apart.",
        intended_use="Teaching.",
        public_scores={"accuracy": 0.875},
        accounted_scores={"accuracy": (0.9, "noisy count, charged to the ledger")},
    )
    text = card.to_markdown()
    assert text.startswith("# Iris\n\nTells three species apart.")
    for entry in head.privacy_.treated_as_public:
        assert entry[1:] in text
    assert "| guarantee | (1, 0.001)-differential privacy |" in text
    assert "30 private, 30 public" in text
    assert "Each person has one row." in text
    assert "| accuracy | 0.875 | public |" in text
    assert "| accuracy | 0.9 | private, accounted for: noisy count, charged to the ledger |" in text
    assert "Teaching." in text
    assert "NOT PRIVATE" not in text and "NO GUARANTEE" not in text
    assert str(card) == card._repr_markdown_() == text
    assert all(warning[1:] in text for warning in head.privacy_.warnings)
    found = model_card(head, public_scores={"accuracy": 1}).to_dict()
    assert found["model"]["classes"] == "0, 1, 2" and found["title"] == "MixedDPLogisticRegression"
    assert found["metrics"] == [{"name": "accuracy", "value": 1.0, "rows": "public"}]
    assert found["private"] is True


@pytest.mark.parametrize("terms", ["mit", 'odd: "x"\n---\ntags: [a]'])
def test_model_hubs_read_the_front_matter(head, terms):
    card = model_card(head)
    _, front, rest = card.to_markdown(license=terms).split("---\n", 2)
    assert rest == f"\n{card.to_markdown()}"
    assert yaml.safe_load(front) == {
        "license": terms,
        "library_name": "skmixdp",
        "tags": ["sklearn", "tabular-classification", "differential-privacy"],
    }
    seeded = MixedDPLogisticRegression("noisy-gd", delta=1e-3, random_state=0).fit(X, Y, X_PUB, Y_PUB)
    front = yaml.safe_load(model_card(seeded).to_markdown(license=terms).split("---\n", 2)[1])
    assert next(iter(front)) == "no_guarantee" and front["no_guarantee"].startswith("NO GUARANTEE")
    assert "differential-privacy" not in front["tags"]
    with pytest.raises(ValueError, match="license=3"):
        card.to_markdown(license=3)


def test_a_card_of_a_search_states_the_total():
    head = MixedDPLogisticRegression("noisy-gd", delta=1e-3)
    search = PrivateSearchCV(head, {"l2": [0.0, 0.1]}, epsilon=1.0, delta=1e-3, scoring="public")
    search.fit(X, Y, X_PUB, Y_PUB)
    card = model_card(search)
    assert "of the whole search" in card.guarantee["guarantee"]
    assert card.model["chosen parameters"] == str(search.best_params_)


def test_a_card_of_a_pipeline_composes_its_members(head):
    member = MixedDPLogisticRegression("noisy-gd", delta=1e-3, classes=[0, 1, 2])
    pipeline = make_pipeline(FunctionTransformer(), member).fit(X, Y)
    card = model_card(pipeline)
    assert "of all members together" in card.guarantee["guarantee"]


def test_several_outputs_have_several_sets_of_classes():
    member = MixedDPLogisticRegression("noisy-gd", delta=1e-3, classes=[0, 1, 2])
    card = model_card(MultiOutputClassifier(member).fit(X, np.column_stack([Y, Y])))
    assert card.model["classes"] == "[0 1 2], [0 1 2]"


@pytest.mark.parametrize(
    "nasty", ["<script>x</script>", "a | b", "# heading\n# other", "[link](x)", "`code`"]
)
def test_texts_of_the_caller_stay_texts(head, nasty):
    text = model_card(
        head, title=nasty, description=nasty, intended_use=nasty, public_scores={nasty: 0.5}
    ).to_markdown()
    assert "<script" not in text
    assert "\n# other" not in text
    table = [line for line in text.splitlines() if line.endswith("| public |")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 4
    assert "](x" not in text.replace("\\]", "")


def test_refusals(head):
    with pytest.raises(NotFittedError):
        model_card(MixedDPLogisticRegression())
    with pytest.raises(ValueError, match=r"public_scores\['accuracy'\]='high' must be a number"):
        model_card(head, public_scores={"accuracy": "high"})
    for bad in (0.9, (0.9,), (0.9, ""), (0.9, 1)):
        with pytest.raises(ValueError, match=r"accounted_scores\['accuracy'\].* says how its cost"):
            model_card(head, accounted_scores={"accuracy": bad})
    with pytest.raises(ValueError, match="title=3"):
        model_card(head, title=3)
