"""The HTML box that notebooks show for an estimator: its guarantee, and links to the documentation."""

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from types import SimpleNamespace
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from .._utils.models import report_of
from .._utils.templates import html
from .report import RELATION_WORDS, first_line, html_line

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
<p>{{ known }}Public rows are not protected.</p>\
{% if reads_classes %}\
<p><b>Without public rows, it reads the classes from private labels</b>, unprotected.</p>{% endif %}"""


@cache
def documentation() -> str | None:
    """Address of the documentation, with a slash at the end; None if the installed package declares none.

    It is the project URL "Documentation". A folder of this machine would not exist for other readers.
    """
    try:
        urls = metadata("skmixdp").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    declared: dict[str, str] = dict(url.split(", ", 1) for url in urls if ", " in url)
    return declared["Documentation"].rstrip("/") + "/" if "Documentation" in declared else None


class GuaranteeBoxMixin:
    """Mixin that adds the guarantee to an estimator's HTML: what a fit will promise, or its report."""

    def _get_doc_link(self) -> str:
        """Address of the class in the interface pages; empty if there is none."""
        base, kind = documentation(), type(self)
        if base is None or kind.__module__.split(".")[0] != "skmixdp":
            return ""
        parts = [part for part in kind.__module__.split(".") if not part.startswith("_")]
        parts = [part for part in parts if part not in ("additive", "estimators")]  # names of the top level
        return f"{base}api/{'.'.join(parts)}.{kind.__name__}.html"

    def _known_leaks(self) -> tuple[str, ...]:
        """Known leaks: what a fit reads from private rows without a budget, by the parameters."""
        return ()

    def _html_repr(self) -> str:
        report = report_of(self)
        first = first_line(self._known_leaks()) if report is None else report.no_guarantee
        return html_line(first) + str(estimator_html_repr(self)) + guarantee_box(self)


class CaptionMixin:
    """Mixin that states the budget, or the guarantee, in diagrams of pipelines and meta-estimators."""

    def _sk_visual_block_(self: Any) -> Any:
        # The attributes that scikit-learn reads from such a block; its own class for them is private.
        return SimpleNamespace(
            kind="single",
            estimators=self,
            names=type(self).__name__,
            name_details=str(self),
            name_caption=_caption(self),
            doc_link_label=None,
        )


def _caption(estimator: BaseEstimator) -> str:
    """The budget of an unfitted estimator, or the guarantee of a fitted one; what surrounds it may leak."""
    report = report_of(estimator)
    if report is None:
        params = estimator.get_params(deep=False)
        return f"budget: epsilon {params['epsilon']}, delta {params['delta']}"
    if not report.private:
        return "NO GUARANTEE"
    return f"({report.epsilon:.6g}, {report.delta:.6g})-differentially private"


def guarantee_box(estimator: BaseEstimator) -> str:
    """HTML with the report of a fitted estimator, or with the budget of the next fit."""
    report = report_of(estimator)
    body = _promise(estimator) if report is None else report._repr_html_()
    if vars(estimator).get("per_instance_") is not None:
        body += (
            "<p><b>It holds the privacy loss of each private row</b>, which is itself private: "
            "<code>del estimator.per_instance_</code> before sharing it.</p>"
        )
    return html(_BOX, body=body, base=documentation(), pages=_PAGES)


def _promise(estimator: BaseEstimator) -> str:
    """The guarantee that a fit of an unfitted estimator will have."""
    params = estimator.get_params(deep=False)
    epsilon, relation = params["epsilon"], params.get("neighboring")
    known = f"Neighbours: {RELATION_WORDS[relation]}. " if relation in RELATION_WORDS else ""
    budget = "the epsilon that noise_multiplier and n_steps imply" if epsilon is None else f"{epsilon}"
    return html(
        _PROMISE,
        seeded=params.get("random_state") is not None,
        leaks=first_line(estimator._known_leaks()),
        budget=f"({budget}, {params['delta']})",
        known=known,
        reads_classes="classes" in params and params["classes"] is None,
    )
