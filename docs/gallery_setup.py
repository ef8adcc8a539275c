"""What sphinx-gallery calls around each example."""

import warnings
from typing import Any

import sklearn

_FILTERS: list[Any] = []


def around_example(gallery_conf: dict[str, Any], name: str, when: str) -> None:
    """Run each example with default settings, and turn a warning that it does not expect into an error."""
    sklearn.set_config(enable_metadata_routing=False)
    if when == "before":
        _FILTERS[:] = warnings.filters
        warnings.simplefilter("error")
    else:
        warnings.filters[:] = _FILTERS
