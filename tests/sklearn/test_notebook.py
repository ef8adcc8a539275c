"""What notebooks show for an estimator: the guarantee, and links."""

import re
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skmixdp import MixedDPLogisticRegression, MixedDPRidge
from skmixdp.model_selection import PrivateSearchCV
from skmixdp.preprocessing import NoisyScaler
from skmixdp.privacy import notebook

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def text_of(estimator):
    """The text of the box, which follows what scikit-learn shows."""
    box = estimator._repr_html_().rsplit("<div style='border", 1)[1]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", "<div '" + box))


def fitted(**parameters):
    X, y = load_digits(return_X_y=True)
    clf = MixedDPLogisticRegression("noisy-gd", n_steps=3, epsilon=2.0, **parameters)
    return clf.fit(X[60:400], y[60:400], X_pub=X[:60], y_pub=y[:60])


@pytest.mark.parametrize("kind", [MixedDPLogisticRegression, MixedDPRidge])
def test_before_the_fit_the_box_says_what_it_will_promise(kind):
    text = text_of(kind(epsilon=0.7, delta=1e-6, neighboring="replace_one"))
    assert "A fit will be (0.7, 1e-06)-differentially private" in text
    assert "one private row replaced by any other" in text
    assert "NOT PRIVATE" not in text


def test_other_estimators_with_a_budget_have_the_box():
    search = PrivateSearchCV(MixedDPLogisticRegression(), {"l2": [0.0, 0.1]}, epsilon=1.5, delta=1e-6)
    assert "A fit will be (1.5, 1e-06)-differentially private" in text_of(search)
    assert "A fit will be (0.25, 1e-05)-differentially private" in text_of(NoisyScaler(0.25))


def test_a_seed_and_an_open_epsilon_are_said():
    text = text_of(MixedDPLogisticRegression(epsilon=None, noise_multiplier=3.0, n_steps=5, random_state=0))
    assert "NOT PRIVATE: random_state is set" in text
    assert "the epsilon that noise_multiplier and n_steps imply" in text


def test_a_known_leak_is_said_before_the_fit():
    pipe = make_pipeline(StandardScaler(), MixedDPLogisticRegression(classes=range(10)))
    text = text_of(PrivateSearchCV(pipe, {}, epsilon=1.5, delta=1e-6))
    assert re.search(r"NO GUARANTEE: [^:]*StandardScaler.* Without the leaks: A fit will be \(1.5,", text)
    assert "NO GUARANTEE" not in text_of(PrivateSearchCV(pipe[-1], {}, epsilon=1.5, delta=1e-6))


def test_after_the_fit_it_is_the_report():
    clf = fitted()
    text = text_of(clf)
    for name, value in clf.privacy_._rows():
        assert name in text and re.sub(r"\s+", " ", value)[:40] in text
    assert "A fit will be" not in text and "per_instance_" not in text


def test_a_record_of_rows_is_said():
    said = " ".join(text_of(fitted(record_per_instance=True)).split())
    assert "del estimator.per_instance_ before sharing it" in said


def captions(estimator):
    return re.findall(r'<div class="caption">(.*?)</div>', estimator._repr_html_())


def test_diagrams_of_scikit_learn_state_the_guarantee():
    """A plain Pipeline has no box, and its diagram promises nothing of a fit around which others may leak."""
    X, y = load_digits(return_X_y=True)
    pipe = make_pipeline(NoisyScaler(0.5, bounds=(0, 16)), MixedDPLogisticRegression(classes=range(10)))
    assert captions(pipe) == ["budget: epsilon 0.5, delta 1e-05", "budget: epsilon 1.0, delta 1e-05"]
    private = [f"({epsilon}, 1e-05)-differentially private" for epsilon in ("0.5", "1")]
    assert captions(pipe.fit(X[:400], y[:400])) == private
    leaking = make_pipeline(StandardScaler(), MixedDPLogisticRegression(classes=range(10)))
    assert captions(leaking.fit(X[:400], y[:400])) == ["NO GUARANTEE"]
    assert captions(fitted(random_state=0)) == ["NO GUARANTEE"]


def test_parameters_are_escaped():
    html = MixedDPLogisticRegression(epsilon="<b>", delta="<script>")._repr_html_()
    box = html.rsplit("<div style='border", 1)[1]
    assert "<script>" not in box and "(&lt;b&gt;, &lt;script&gt;)" in box


def test_the_html_of_scikit_learn_is_kept_and_can_be_turned_off():
    html = fitted()._repr_html_()
    assert "sk-top-container" in html and "Fitted attributes" in html
    HTMLParser().feed(html)
    with config_context(display="text"):
        assert not hasattr(MixedDPLogisticRegression(), "_repr_html_")


def test_without_an_address_no_page_is_named(monkeypatch):
    """A wheel has no docs folder, so no file of it is named."""
    monkeypatch.setattr(notebook, "documentation", lambda: None)
    text = text_of(MixedDPLogisticRegression())
    assert "docs/" not in text and ".md" not in text
    assert MixedDPLogisticRegression()._get_doc_link() == ""


def test_links_lead_to_pages_and_to_the_interface(monkeypatch):
    monkeypatch.setattr(notebook, "documentation", lambda: "https://example.org/")
    html = MixedDPLogisticRegression()._repr_html_()
    assert 'href="https://example.org/api/skmixdp.MixedDPLogisticRegression.html"' in html
    assert NoisyScaler()._get_doc_link() == "https://example.org/api/skmixdp.preprocessing.NoisyScaler.html"

    class Own(MixedDPLogisticRegression):
        """A subclass elsewhere, which these pages do not describe."""

    assert Own()._get_doc_link() == ""


def test_the_address_is_the_one_that_the_package_declares(monkeypatch):
    class Declared:
        def get_all(self, name):
            return ["Source, https://example.org/git", "Documentation, https://example.org/docs"]

    monkeypatch.setattr(notebook, "metadata", lambda name: Declared())
    assert notebook.documentation.__wrapped__() == "https://example.org/docs/"


def test_nothing_declared_is_no_address(monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(notebook, "metadata", absent)
    assert notebook.documentation.__wrapped__() is None
