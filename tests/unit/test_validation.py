import numpy as np
import pytest

from skmixdp.estimators._classifier import encode_labels


@pytest.mark.parametrize(
    ("good", "odd"), [([0, 1], 7391), (["a", "b"], "Jane Doe, 7391"), ([0.5, 1.5], 7391.25)]
)
def test_a_private_label_that_is_no_class_is_not_quoted(good, odd):
    """It may be an entry of a wrong column, and messages end up in logs."""
    labels, classes = np.array([*good, odd], dtype=object), np.array(good)
    with pytest.raises(ValueError, match="is not one of the classes") as private:
        encode_labels(labels, classes, "y", private=True)
    assert "7391" not in str(private.value)
    with pytest.raises(ValueError, match=r"7391.* is not one of the classes"):
        encode_labels(labels, classes, "y_pub", private=False)
