"""What HTML pages of estimators say of a guarantee, and where its documentation is."""

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

from .._utils.lazy_imports import annex
from .._utils.models import report_of
from .report import first_line


@cache
def documentation() -> str | None:
    """The project URL "Documentation", with a slash at the end; None if the package declares none."""
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
        public = takewhile(lambda part: not part.startswith("_"), kind.__module__.split("."))
        parts = [part for part in public if part not in ("additive", "estimators", "inference")]  # at the top
        return f"{base}api/{'.'.join(parts)}.{kind.__name__}.html"

    def _known_leaks(self) -> tuple[str, ...]:
        """Known leaks: what a fit reads from private rows without a budget, by the parameters."""
        return ()

    def _html_repr(self) -> str:
        report = report_of(self)
        first = first_line(self._known_leaks()) if report is None else report.no_guarantee
        page: str = annex("estimator_page")(self, first)
        return page


class CaptionMixin:
    """Mixin that states the budget, or the guarantee, in diagrams of pipelines and meta-estimators."""

    def _sk_visual_block_(self: Any) -> Any:
        # The attributes that scikit-learn reads from such a block; its own class for them is private.
        return SimpleNamespace(
            kind="single",
            estimators=self,
            names=type(self).__name__,
            name_details=str(self),
            name_caption=annex("caption")(self),
            doc_link_label=None,
        )
