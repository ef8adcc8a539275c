"""Scaling each row by itself."""

from sklearn.preprocessing import Normalizer


class RowNormalizer(Normalizer):  # type: ignore[misc]
    """Scale each row to unit length: it learns nothing, so it costs no privacy.

    It is scikit-learn's ``Normalizer`` under a name that says what it may see. Rows of zeros
    stay as they are, and sparse rows stay sparse.

    Parameters
    ----------
    norm : {"l1", "l2", "max"}, default="l2"
        The length that becomes 1.
    copy : bool, default=True
        False scales NumPy arrays and sparse rows in place.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, where the rows are a data frame with string columns.

    See Also
    --------
    PublicCenterer : Subtract the public mean first, and unit rows differ by more.

    Notes
    -----
    *Guarantee*: ``fit`` keeps the number of columns and their names alone, and ``transform`` may
    be called without it. What one row becomes depends on no other row.

    The estimators scale rows themselves (``normalize=True``).

    Examples
    --------
    >>> from skmixdp.preprocessing import RowNormalizer
    >>> RowNormalizer().transform([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
