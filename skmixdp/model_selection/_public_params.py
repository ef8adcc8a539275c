"""Public rows in a form that scikit-learn passes on whole."""

from typing import Any


def public_params(X_pub: Any, y_pub: Any) -> dict[str, Any]:
    """Public rows as keyword arguments that no splitter takes rows from.

    scikit-learn's model selection gives each fold the training rows of every argument that
    is as long as ``X``: with as many public rows as private ones, it would quietly drop some
    public rows from every fit. A tuple of one array has length 1, so it is passed whole, and
    ``Pipeline(transform_input=["X_pub"])`` transforms what is in it.

    Parameters
    ----------
    X_pub : array-like of shape (n_pub, n_features), or tuple of such
        Public rows: one array, or a tuple of several sources.
    y_pub : array-like of shape (n_pub,), or tuple of such
        Labels of the public rows, in the same form.

    Returns
    -------
    dict
        ``{"X_pub": (X_pub,), "y_pub": (y_pub,)}``, for ``fit(X, y, **...)`` or for
        ``cross_val_score(..., params=...)``. Tuples of several sources are returned as they are.

    Raises
    ------
    ValueError
        If one of the two is missing, or if they hold different numbers of sources.

    Notes
    -----
    *Guarantee*: nothing here sees a private row. Each fit of a search spends the estimator's
    budget, and each score on private rows is a release that nothing pays for.

    A tuple of exactly as many sources as there are private rows would itself be split, and the
    fits would fail. Join the sources into one array in that case.

    Examples
    --------
    >>> import numpy as np
    >>> from skmixdp.model_selection import public_params
    >>> params = public_params(np.eye(3), [0, 1, 2])
    >>> len(params["X_pub"]), params["y_pub"]
    (1, ([0, 1, 2],))
    """
    for name, value in (("X_pub", X_pub), ("y_pub", y_pub)):
        if value is None:
            raise ValueError(f"{name}=None must be given too; public rows need both X_pub and y_pub.")
    rows = X_pub if isinstance(X_pub, tuple) else (X_pub,)
    labels = y_pub if isinstance(y_pub, tuple) else (y_pub,)
    if len(rows) != len(labels):
        raise ValueError(
            f"X_pub has {len(rows)} sources and y_pub {len(labels)}; pass as many label arrays as row arrays."
        )
    return {"X_pub": rows, "y_pub": labels}
