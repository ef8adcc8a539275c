"""The findings of a pipeline check."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from ..._utils.documents import Section, as_html

Kind = Literal["leak", "uncounted", "public rows", "note"]

_HEADINGS: dict[Kind, str] = {
    "leak": "learns from private rows without a budget",
    "uncounted": "makes fits that its result does not show",
    "public rows": "does not get the public rows in the right form",
    "note": "needs a decision",
}


@dataclass(frozen=True)
class Finding:
    """One problem of a pipeline that the guarantee does not cover.

    Attributes
    ----------
    kind : {"leak", "uncounted", "public rows", "note"}
        ``"leak"``: a step learns from private rows without a budget. ``"uncounted"``: it makes private fits
        and drops them, so only a ledger can count their budgets. ``"public rows"``: they do not reach a step,
        or reach it untransformed. ``"note"``: harmless under the condition in ``learns``.
    path : str
        Name of the step as in ``set_params``, for example ``columns__encode``. Empty for the
        checked object itself.
    step : str
        Class of the step.
    learns : str
        What the step would learn from private rows, or what goes wrong.
    fix : str
        What to do instead.
    """

    kind: Kind
    path: str
    step: str
    learns: str
    fix: str

    def __str__(self) -> str:
        name = f"{self.path} ({self.step})" if self.path else self.step
        return f"{name}: {self.learns}; fix: {self.fix}"


@dataclass(frozen=True)
class PipelineReport(Sequence[Finding]):
    """Findings of :func:`~skmixdp.preprocessing.check_pipeline`: a sequence, empty if there are none.

    Attributes
    ----------
    findings : tuple of Finding
        In the order of the steps.
    """

    findings: tuple[Finding, ...]

    def of_kind(self, kind: Kind) -> tuple[Finding, ...]:
        """Findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def in_words(self, *kinds: Kind) -> tuple[str, ...]:
        """Class and learned statistic of each finding of some kinds, without repeats."""
        named = (f"{each.step}: {each.learns}" for each in self.findings if each.kind in kinds)
        return tuple(dict.fromkeys(named))

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return "Pipeline check: no step is known to learn from private rows without a budget"
        lines = ["Pipeline check"]
        for kind, heading in _HEADINGS.items():
            for finding in self.of_kind(kind):
                name = f"{finding.path} ({finding.step})" if finding.path else finding.step
                lines += [f"  {name} {heading}", f"    {finding.learns}", f"    fix: {finding.fix}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self.findings:
            return as_html("", [Section(paragraphs=[str(self)])])
        rows = [(each.kind, each.path, each.step, each.learns, each.fix) for each in self.findings]
        return as_html("", [Section("Pipeline check", rows, ("kind", "step", "class", "what", "fix"))])
