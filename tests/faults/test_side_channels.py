"""Extreme private rows change no warning, no error and no number of steps, and no memory is spent on them."""

import numpy as np
import pytest

from tests.faults.side_channels import KINDS, ROWS, Traces, compared, peak_memory, with_row


def said(traces):
    """Warnings, without those that follow from noisy counts."""
    released = "rows suffice", "so the fit left them out"
    return {text for text in traces.said if not any(words in text for words in released)}


@pytest.mark.parametrize("name", KINDS)
def test_neighbours_leave_the_same_traces(name):
    kind = KINDS[name]
    zeroed = kind.hold(with_row(0.0))
    for row, (rows, labels) in ROWS.items():
        if row == "huge" and "as they are" in name:  # refused by the checks, before anything is drawn
            (refusal,) = Traces.of(kind, rows, labels).said
            assert "a row that is too large" in refusal
            continue
        one, other = (Traces.of(kind, held, labels) for held in (kind.hold(rows), zeroed))
        assert said(one) == said(other)
        assert not any("Error" in text or "RuntimeWarning" in text for text in one.said)
        if name != "default":  # which may stop early, by what was released
            assert one.n_steps == other.n_steps


def test_no_memory_is_spent_on_a_row():
    kind = KINDS["noisy-gd"]
    for row in ("huge", "subnormal"):
        pair = ROWS[row][0], with_row(0.0)
        peaks = [np.median([peak_memory(kind, rows, ROWS[row][1]) for _ in range(3)]) for rows in pair]
        assert abs(peaks[0] - peaks[1]) < 4096


class Slow:
    """A fit that looks at its rows, and says so."""

    n_iter_ = 1

    def fit(self, X, y, X_pub, y_pub):
        if X.any(axis=1).all():
            import warnings

            warnings.warn("a row of zeros is missing", stacklevel=2)
            self.n_iter_ = sum(i for i in range(20_000)) % 7 + 2
        return self


def test_a_fit_that_looks_at_its_rows_would_be_found(monkeypatch):
    from tests.faults.side_channels import Kind

    found = compared(Kind(Slow), *ROWS["ordinary"], 30)
    assert found.auc - found.margin > 0.5
    assert any("n_steps" in text for text in found.differing)
    assert any("a row of zeros is missing" in text for text in found.differing)
