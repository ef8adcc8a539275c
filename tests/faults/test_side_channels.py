"""Extreme private rows change no warning, no error and no number of steps, and no memory is spent on them."""

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
    of_zeroed = {}  # by their labels
    for row, (rows, labels) in ROWS.items():
        if row == "huge" and "as they are" in name:  # refused by the checks, before anything is drawn
            (refusal,) = Traces.of(kind, rows, labels).said
            assert "a row that is too large" in refusal
            continue
        if id(labels) not in of_zeroed:
            of_zeroed[id(labels)] = Traces.of(kind, zeroed, labels)
        one, other = Traces.of(kind, kind.hold(rows), labels), of_zeroed[id(labels)]
        assert said(one) == said(other)
        assert not any("Error" in text or "RuntimeWarning" in text for text in one.said)
        if name != "default":  # which may stop early, by what was released
            assert one.n_steps == other.n_steps


def test_no_memory_is_spent_on_a_row():
    kind = KINDS["noisy-gd"]
    for _ in range(2):  # the first fits of a process import modules, and look for libraries
        kind.fit(*ROWS["ordinary"])

    def more(row):
        """Bytes that a fit holds more than one to the neighbour."""
        pair = ROWS[row][0], with_row(0.0)
        peaks = [min(peak_memory(kind, rows, ROWS[row][1]) for _ in range(2)) for rows in pair]
        return peaks[0] - peaks[1]

    for row in ("ordinary", "subnormal", "tiny"):
        assert abs(more(row)) < 4096
    # Blocks of at most 256 KiB are mapped a second time, more robustly, where a row is too long for squares.
    assert abs(more("huge")) < 2**18 + 4096


class Slow:
    """A fit that looks at its rows, and says so."""

    n_iter_ = 1

    def fit(self, X, y, X_pub, y_pub):
        if X.any(axis=1).all():
            import warnings

            warnings.warn("a row of zeros is missing", stacklevel=2)
            self.n_iter_ = sum(i for i in range(20_000)) % 7 + 2
        return self


@pytest.mark.slow
def test_a_fit_that_looks_at_its_rows_would_be_found(monkeypatch):
    from tests.faults.side_channels import Kind

    found = compared(Kind(Slow), *ROWS["ordinary"], 30)
    assert found.auc - found.margin > 0.5
    assert any("n_steps" in text for text in found.differing)
    assert any("a row of zeros is missing" in text for text in found.differing)
