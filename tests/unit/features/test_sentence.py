"""Sentence encoders, on a tiny network with random weights that the test builds and saves."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import estimator_checks

from skmixdp import MixedDPLogisticRegression
from skmixdp.features import SentenceFeatures, ZeroShotHead
from tests.private_names import load_backend
from tests.unit.features.test_transformer import CHECKS

# The library takes seconds to import.
pytestmark = pytest.mark.slow

if find_spec("sentence_transformers") is None:
    pytest.skip("needs sentence-transformers; install skmixdp[text]", allow_module_level=True)

WORDS = ["card", "cash", "lost", "top", "up", "my", "the", "transfer", "has", "failed", "a", "not", "?"]
TEXTS = ["my card", "top up cash ?", "the transfer has not failed", "lost", "a card has failed my transfer"]


@pytest.fixture(scope="module", autouse=True)
def library():
    """The library, imported as the package does: first torchvision, whose build may not be PyTorch's."""
    load_backend("sentences", "text")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two layers of BERT over a vocabulary of 18 pieces, pooled by the mean, in a folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = BertModel(
            BertConfig(
                vocab_size=len(vocabulary),
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=32,
                hidden_dropout_prob=0.5,
            )
        )
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    words = Transformer(str(folder))
    whole = SentenceTransformer(modules=[words, Pooling(16)], device="cpu")
    whole.save(str(folder / "whole"))
    return folder / "whole"


def features_of(model, **changed):
    return SentenceFeatures(model, device="cpu", **changed)


def test_rows_are_those_of_the_library(model):
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(model), device="cpu").encode(TEXTS)
    unit = features_of(model).transform(TEXTS)
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)


def test_padding_and_order_do_not_change_a_row(model):
    rows = features_of(model).transform(TEXTS)
    assert np.linalg.norm(rows[0] - rows[1]) > 1e-2
    alone = np.concatenate([features_of(model).transform([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, rows, atol=1e-5)
    order = [3, 0, 4, 2, 1]
    permuted = features_of(model, batch_size=2).transform([TEXTS[place] for place in order])
    np.testing.assert_allclose(permuted, rows[order], atol=1e-5)


def test_lists_arrays_and_columns(model):
    rows = features_of(model).transform(TEXTS)
    frame = pd.DataFrame({"text": TEXTS})
    for texts in (np.array(TEXTS), frame["text"], frame):
        np.testing.assert_array_equal(features_of(model).transform(texts), rows)
    np.testing.assert_array_equal(features_of(model).encode_texts(TEXTS), rows)


@pytest.mark.parametrize("batch_size", [2, 64])
def test_static_embeddings_whose_tokens_follow_each_other(tmp_path, batch_size):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    network = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")
    network.save(str(tmp_path))
    texts = [*TEXTS, "", "card"] * 20  # 140, more than one batch, and of all lengths
    expected = network.encode(texts)
    rows = features_of(tmp_path, batch_size=batch_size).transform(texts)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, expected / np.where(lengths > 0, lengths, 1), atol=1e-6)


def test_the_cache_keeps_rows(model, tmp_path):
    first = features_of(model, cache=tmp_path).extract(TEXTS)
    again = features_of(model, cache=tmp_path).extract([*TEXTS, "cash"])
    assert (first.n_computed, again.n_computed) == (5, 1)
    np.testing.assert_array_equal(again.features[:5], first.features)


def test_the_report_has_the_weights_and_names_go_by_the_class(model):
    fitted = features_of(model).fit()
    assert len(fitted.report_["weights"]["sha256"]) == 64
    assert "at most 32 tokens" in fitted.report_["preprocessing"]
    assert fitted.get_feature_names_out()[-1] == "sentencefeatures15"


def test_class_names_start_a_private_head(model):
    encoder = features_of(model)
    X = encoder.transform(TEXTS * 8)
    y = np.array([0, 1, 1, 0, 1] * 8)
    head = ZeroShotHead({0: "card", 1: "transfer"}, templates=["my {}", "the {} ?"], encoder=encoder)
    clf = MixedDPLogisticRegression("noisy-gd", init=head, classes=[0, 1], delta=1e-3, n_steps=1)
    clf.fit(X, y)
    assert clf.coef_.shape == (1, 16)


@pytest.mark.parametrize(("parameters", "error", "message"), [({"model": 3}, ValueError, "model=3 must be")])
def test_parameters_that_cannot_be_used(model, parameters, error, message):
    with pytest.raises(error, match=message):
        SentenceFeatures(**{"model": model, **parameters}).transform(TEXTS)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be loaded .*; use the name of a model"):
        features_of(tmp_path).transform(TEXTS)


def test_items_must_be_texts(model):
    with pytest.raises(TypeError, match="pass texts"):
        features_of(model).transform(["my card", 3])


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learns_checks_that_apply(check, model):
    getattr(estimator_checks, check)("SentenceFeatures", features_of(str(model)))
