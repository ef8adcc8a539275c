"""What notebooks show for an estimator: its guarantee, in a box and in diagrams."""

from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from .._utils.documents import Section, as_html, html
from .._utils.models import last_step, record_of, report_of
from ..privacy.report import RELATION_WORDS, first_line

_BOX = """<div style='border: 1px solid currentColor; border-radius: 4px; padding: 0.5em 0.8em; \
margin-top: 0.5em; display: inline-block; max-width: 60em'>{{ body | safe }}</div>"""


def estimator_page(estimator: BaseEstimator, first: str) -> str:
    """The HTML of scikit-learn for an estimator, below a ``first`` line and above a box on its last step."""
    head = last_step(estimator)
    report = report_of(head)
    sections = [Section(paragraphs=_promise(head))] if report is None else report._sections()
    if record_of(head) is not None:
        note = (
            "It holds the privacy loss of each private row, which is itself private: del "
            "estimator.per_instance_ before sharing it."
        )
        sections.append(Section(notes=[note]))
    body = as_html("" if report is None else report.no_guarantee, sections)
    return as_html(first, []) + str(estimator_html_repr(estimator)) + html(_BOX, body=body)


def _promise(estimator: BaseEstimator) -> list[str]:
    """The guarantee that a fit of an unfitted estimator will have."""
    params = estimator.get_params(deep=False)
    epsilon, relation = params["epsilon"], params.get("neighboring")
    budget = "the epsilon that noise_multiplier and n_steps imply" if epsilon is None else epsilon
    neighbours = f"Neighbours: {RELATION_WORDS[relation]}. " if relation in RELATION_WORDS else ""
    promise = [
        f"A fit will be ({budget}, {params['delta']})-differentially private in the rows of X, y.",
        f"{neighbours}Public rows are not protected.",
    ]
    if leaks := first_line(estimator._known_leaks()):
        promise.insert(0, f"{leaks}. Without the leaks:")
    if params.get("random_state") is not None:
        promise.insert(0, "NOT PRIVATE: random_state is set. Without it:")
    if "classes" in params and params["classes"] is None:
        promise.append("Without public rows, it reads the classes from private labels, unprotected.")
    return promise


def caption(estimator: BaseEstimator) -> str:
    """The budget of an unfitted estimator, or the guarantee of a fitted one; what surrounds it may leak."""
    report = report_of(estimator)
    if report is None:
        params = estimator.get_params(deep=False)
        return f"budget: epsilon {params['epsilon']}, delta {params['delta']}"
    if not report.private:
        return "NO GUARANTEE"
    return f"({report.epsilon:.6g}, {report.delta:.6g})-differentially private"
