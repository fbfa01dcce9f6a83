import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.trainers.data_adapters import array_slicing

import tfbbb
from tfbbb.layers import DenseVariational
from tfbbb.training_rows import training_rows

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10.0)


class Rows(keras.utils.PyDataset):
    """Ten rows in batches of four, with what comes after the targets."""

    def __init__(self, *rest, num_batches=3):
        super().__init__()
        self._rest = rest
        self._num_batches = num_batches

    @property
    def num_batches(self):
        return self._num_batches

    def __getitem__(self, index):
        rows = slice(4 * index, 4 * index + 4)
        return (X[rows], Y[rows], *(array[rows] for array in self._rest))


def dataset(*rest):
    return tf.data.Dataset.from_tensor_slices((X, Y, *rest)).batch(4)


def generator():
    while True:
        yield X, Y


@pytest.mark.parametrize("y", [Y, Y[:, np.newaxis], Y.tolist(), tf.constant(Y)])
def test_arrays_are_counted(y):
    rows = training_rows(X, y)
    assert rows.size == 10
    np.testing.assert_array_equal(np.ravel(rows.targets), Y)


@pytest.mark.parametrize("num_rows", [1, 2, 7, 10, 33, 100, 999])
@pytest.mark.parametrize("split", [0.1, 0.2, 0.25, 1 / 3, 0.5, 0.7, 0.9])
def test_validation_split_leaves_the_rows_that_keras_leaves(num_rows, split):
    y = np.arange(num_rows)
    try:
        (kept,), _ = array_slicing.train_validation_split((y,), split)
    except ValueError:
        with pytest.raises(ValueError, match="nothing to train on"):
            training_rows(y, y, validation_split=split)
    else:
        rows = training_rows(y, y, validation_split=split)
        np.testing.assert_array_equal(rows.targets, kept)
        assert rows.size == len(kept)


def test_weights_are_summed_over_the_training_rows_only():
    weights = np.arange(10.0)
    assert training_rows(X, Y, sample_weight=weights).size == 45.0
    rows = training_rows(X, Y, sample_weight=weights, validation_split=0.2)
    assert rows.size == sum(range(8))


@pytest.mark.parametrize("one_hot", [False, True])
def test_classes_weigh_what_they_are_given_and_else_one(one_hot):
    labels = np.array([0, 0, 1, 2, 2, 2])
    y = np.eye(3)[labels] if one_hot else labels
    rows = training_rows(np.zeros((6, 1)), y, class_weight={0: 0.5, 2: 3.0})
    assert rows.size == 2 * 0.5 + 1 + 3 * 3.0


@pytest.mark.parametrize("data", [dataset, Rows])
def test_datasets_of_known_length_are_read_to_the_end(data):
    rows = training_rows(data(), None)
    assert rows.size == 10
    np.testing.assert_array_equal(rows.targets, Y)
    assert training_rows(data(np.full(10, 0.25)), None).size == 2.5
    assert training_rows(data(), None, class_weight={0: 3.0}).size == 12.0


def test_weights_of_columns_count_as_those_of_vectors():
    assert training_rows(dataset(np.full((10, 1), 0.5)), None).size == 5.0


def test_repeated_dataset_of_known_length_counts_every_row_it_gives():
    assert training_rows(dataset().repeat(3), None).size == 30


@pytest.mark.parametrize(
    "endless",
    [
        lambda: dataset().repeat(),
        lambda: dataset().filter(lambda x, y: True),
        lambda: Rows(num_batches=None),
        generator,
    ],
    ids=["infinite", "unknown", "PyDataset", "generator"],
)
def test_unknown_number_of_rows_must_be_given(endless):
    with pytest.raises(ValueError, match=r"Pass `dataset_size=N`.*Received: x of type"):
        training_rows(endless(), None)
    assert training_rows(endless(), None, dataset_size=1000).size == 1000


def test_endless_dataset_gives_targets_of_its_stated_rows():
    rows = training_rows(dataset().repeat(), None, dataset_size=10)
    np.testing.assert_array_equal(rows.targets, Y)
    assert training_rows(generator(), None, dataset_size=10).targets is None


def test_given_size_is_believed():
    assert training_rows(X, Y, dataset_size=50).size == 50
    assert training_rows(dataset(), None, dataset_size=7.5).size == 7.5


@pytest.mark.parametrize("size", [0, -1, np.nan, np.inf])
def test_given_size_must_be_positive_and_finite(size):
    with pytest.raises(ValueError, match=f"`dataset_size` must be .*={size}"):
        training_rows(X, Y, dataset_size=size)


@pytest.mark.parametrize(
    "arguments",
    [
        {"y": Y[:0]},
        {"y": Y[:0], "dataset_size": 5},
        {"y": Y, "sample_weight": np.zeros(10)},
        {"y": Y, "validation_split": 1.0},
    ],
)
def test_no_rows_are_refused(arguments):
    with pytest.raises(ValueError, match="nothing to train on"):
        training_rows(X, **arguments)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_by_row(weight):
    weights = np.ones(10)
    weights[6] = weight
    message = rf"sample weight must be .*Received: {weight} in row 6$"
    with pytest.raises(ValueError, match=message):
        training_rows(X, Y, sample_weight=weights)
    for data in (dataset(weights), Rows(weights[:, np.newaxis])):
        with pytest.raises(ValueError, match=r"in row 6$"):
            training_rows(data, None)


@pytest.mark.parametrize("x", [X, tf.constant(X), {"a": X}, [X, X], None])
def test_missing_targets_are_named(x):
    for size in (None, 10):
        with pytest.raises(ValueError, match="Training needs targets: pass `y`"):
            training_rows(x, None, dataset_size=size)


def test_dataset_without_targets_is_refused():
    inputs = tf.data.Dataset.from_tensor_slices(X).batch(4)
    with pytest.raises(ValueError, match=r"a dataset of \(x, y\) pairs"):
        training_rows(inputs, None)


def test_validation_data_overrides_the_split():
    inputs = keras.Input((2,))
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    model.compile()
    model.fit(X, Y, validation_split=0.5, validation_data=(X, Y), verbose=0)
    assert model.num_rows == 10


def test_several_weights_of_a_row_are_refused():
    with pytest.raises(ValueError, match=r"one sample weight.*shape \(10, 2\)"):
        training_rows(X, Y, sample_weight=np.ones((10, 2)))


@pytest.mark.parametrize("x", [X.tolist(), {"a": X, "b": X[:, 0].tolist()}])
def test_inputs_that_are_lists_of_numbers_are_refused(x):
    with pytest.raises(ValueError, match=r"Pass `np.asarray\(x\)`.*of type float"):
        training_rows(x, Y)
