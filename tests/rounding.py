"""Comparisons of floating-point arrays that hold on every processor."""

import numpy as np

#: 4,096 roundings in double precision.
DOUBLE = 2.0**-40


def assert_close(actual, expected, rounding=DOUBLE, *, terms=None):
    """Entries differ by at most ``rounding`` times the magnitude of their terms.

    ``terms`` are the sums of the magnitudes of what is added up in each entry. Without them, the largest
    magnitude of ``expected`` stands for those of all entries.
    """
    actual, expected = np.broadcast_arrays(actual, expected)
    if terms is None:
        terms = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):  # equal infinities
        off = np.where(actual == expected, 0, np.abs(actual - expected))
    np.testing.assert_array_less(off, np.nextafter(rounding * terms, np.inf), err_msg=f"{actual}\n{expected}")


def assert_relative(actual, expected, rtol=1e-7):
    """Each entry has at most this relative error, as where nothing cancels: closed forms, lengths, counts."""
    assert np.all(np.asarray(expected) >= 0), "values of both signs: use assert_close"
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=0)
