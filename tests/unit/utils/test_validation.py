import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tests.private_names import encode_labels, validation


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, float, object, bool])
def test_labels_of_every_type_are_looked_up(dtype):
    """Integers of a short range by a table, all others one by one; True is 1."""
    y = np.array([1, 0, 0, 1, 1]).astype(dtype)
    for classes in (np.array([0, 1]), np.array([False, True]), np.array([0.0, 1.0])):
        np.testing.assert_array_equal(encode_labels(y, classes, "y", private=True), [1, 0, 0, 1, 1])
    far = np.array([-(2**62), 0, 2**62])
    np.testing.assert_array_equal(encode_labels(far, far, "y", private=True), [0, 1, 2])
    largest = np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64)
    np.testing.assert_array_equal(encode_labels(largest, np.sort(largest), "y", private=True), [1, 0])
    with pytest.raises(ValueError, match=r"^y holds numbers and classes holds text"):
        encode_labels(y, np.array(["0", "1"]), "y", private=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_labels_that_floats_cannot_tell_apart_are_refused(dtype):
    """One fraction among long labels makes floats of all, and different ones equal."""
    longest = int(2 / np.finfo(dtype).eps)
    classes = np.array([1, longest, longest + 1])
    y = np.tile(classes, 3)
    np.testing.assert_array_equal(encode_labels(y, classes, "y", private=True), [0, 1, 2] * 3)
    with pytest.raises(ValueError, match=r"y holds real numbers, .*pass integers or strings"):
        encode_labels(y.astype(dtype), classes, "y", private=True)
    shorter = np.array([1, longest - 2, longest - 1])
    held = np.tile(shorter, 3).astype(dtype)
    np.testing.assert_array_equal(encode_labels(held, shorter, "y", private=True), [0, 1, 2] * 3)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_a_frame_is_read_with_one_copy_in_double_precision(dtype):
    numbers = np.arange(2_000_000).reshape(40_000, 50).astype(dtype)
    frame = pd.DataFrame(np.asfortranarray(numbers))
    tracemalloc.start()
    table = validation.check_table(frame, "X", minimum=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.dtype == np.float64 and table.flags.c_contiguous and np.array_equal(table, numbers)
    assert peak < 1.5 * table.nbytes


def test_a_frame_of_rows_in_double_precision_is_not_copied():
    numbers = np.random.default_rng(0).normal(size=(100, 5))
    assert np.shares_memory(
        validation.check_table(pd.DataFrame(numbers, copy=False), "X", minimum=1), numbers
    )
