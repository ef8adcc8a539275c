"""What notebooks show for an estimator: its guarantee, in a box and in diagrams, and links to pages."""

from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from .._utils.models import last_step, record_of, report_of
from .._utils.templates import html
from ..privacy import notebook
from ..privacy.report import RELATION_WORDS, first_line, html_line

#: Pages that the box names: the title or its first words, and the file without its ending.
_PAGES = (
    ("What is guaranteed", "guarantee"),
    ("What leaks", "what_leaks"),
    ("Budgets across projects", "ledger"),
)

_BOX = """<div style='border: 1px solid currentColor; border-radius: 4px; padding: 0.5em 0.8em; \
margin-top: 0.5em; display: inline-block; max-width: 60em'>{{ body | safe }}<p>Read on: \
{% if base is none %}in the user guide, {% endif %}{% for title, page in pages %}\
{% if base is none %}<i>{{ title }}</i>{% else %}\
<a href='{{ base }}{{ page }}.html' target='_blank' rel='noreferrer'>{{ title }}</a>\
{% endif %}{% if not loop.last %}, {% endif %}{% endfor %}</p></div>"""

#: The promise of a fit, as text.
_PROMISE = """{% if seeded %}<p><b>NOT PRIVATE: random_state is set.</b> Without it:</p>{% endif %}\
{% if leaks %}<p><b>{{ leaks }}.</b> Without the leaks:</p>{% endif %}\
<p><b>A fit will be {{ budget }}-differentially private</b> in the rows of <code>X, y</code>.</p>\
<p>{{ neighbours }}Public rows are not protected.</p>\
{% if reads_classes %}\
<p><b>Without public rows, it reads the classes from private labels</b>, unprotected.</p>{% endif %}"""


def estimator_page(estimator: BaseEstimator, first: str) -> str:
    """The HTML of scikit-learn for an estimator, below a ``first`` line and above a box on its last step."""
    return html_line(first) + str(estimator_html_repr(estimator)) + _box(last_step(estimator))


def _box(estimator: BaseEstimator) -> str:
    """HTML with the report of a fitted estimator, or with the budget of the next fit."""
    report = report_of(estimator)
    body = _promise(estimator) if report is None else report._repr_html_()
    if record_of(estimator) is not None:
        body += (
            "<p><b>It holds the privacy loss of each private row</b>, which is itself private: "
            "<code>del estimator.per_instance_</code> before sharing it.</p>"
        )
    return html(_BOX, body=body, base=notebook.documentation(), pages=_PAGES)


def _promise(estimator: BaseEstimator) -> str:
    """The guarantee that a fit of an unfitted estimator will have."""
    params = estimator.get_params(deep=False)
    epsilon, relation = params["epsilon"], params.get("neighboring")
    neighbours = f"Neighbours: {RELATION_WORDS[relation]}. " if relation in RELATION_WORDS else ""
    budget = "the epsilon that noise_multiplier and n_steps imply" if epsilon is None else f"{epsilon}"
    return html(
        _PROMISE,
        seeded=params.get("random_state") is not None,
        leaks=first_line(estimator._known_leaks()),
        budget=f"({budget}, {params['delta']})",
        neighbours=neighbours,
        reads_classes="classes" in params and params["classes"] is None,
    )


def caption(estimator: BaseEstimator) -> str:
    """The budget of an unfitted estimator, or the guarantee of a fitted one; what surrounds it may leak."""
    report = report_of(estimator)
    if report is None:
        params = estimator.get_params(deep=False)
        return f"budget: epsilon {params['epsilon']}, delta {params['delta']}"
    if not report.private:
        return "NO GUARANTEE"
    return f"({report.epsilon:.6g}, {report.delta:.6g})-differentially private"
