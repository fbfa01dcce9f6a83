import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.trainers.data_adapters import array_slicing

import tfbbb
from tfbbb.layers import DenseVariational
from tfbbb.model.training_rows import rows_of_generator, training_rows

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10.0)
PAIRS = tf.data.Dataset.from_tensor_slices((X, Y))


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


@pytest.mark.parametrize("data", [dataset, Rows])
def test_datasets_of_known_length_are_read_to_the_end(data):
    rows = training_rows(data(), None)
    assert rows.size == 10
    np.testing.assert_array_equal(rows.targets, Y)
    assert training_rows(data(np.full(10, 0.5)), None).size == 5.0


def flipped(x, y):
    return -x, y


@pytest.mark.parametrize(
    "data",
    [
        dataset().repeat(3),
        dataset().repeat(),
        dataset().map(flipped).shuffle(3).repeat(2).prefetch(1),
        PAIRS.repeat(3).shuffle(30).batch(4),
        PAIRS.repeat().batch(4, num_parallel_calls=2).map(flipped),
        PAIRS.cache().repeat().take(25).batch(4),
        PAIRS.shuffle(10).batch(4, drop_remainder=True),
        PAIRS.repeat(2).batch(7, drop_remainder=True),
        tf.data.Dataset.from_tensors((X, Y)).repeat(),
        tf.data.Dataset.from_tensors((X, Y)).repeat(5),
        PAIRS.take(4).concatenate(PAIRS.skip(4)).batch(4),
        PAIRS.repeat().batch(4).take(8),
        tf.data.Dataset.zip(
            (tf.data.Dataset.range(10), tf.data.Dataset.from_tensors((X, Y)).repeat())
        )
        .map(lambda i, pair: (pair[0][i], pair[1][i]))
        .batch(4),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_that_a_dataset_repeats_count_once(data):
    rows = training_rows(data, None)
    assert rows.size == 10
    assert training_rows(data, None, needs_targets=False).size == 10


def test_concatenated_sources_add_up():
    other = tf.data.Dataset.from_tensor_slices((X[:3], Y[:3]))
    assert training_rows(PAIRS.concatenate(other).repeat(2).batch(4), None).size == 13


@pytest.mark.parametrize(
    "endless",
    [
        lambda: dataset().filter(lambda x, y: True).repeat(),
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


@pytest.mark.parametrize(
    "endless",
    [
        lambda: dataset().filter(lambda x, y: True).repeat(),
        lambda: Rows(num_batches=None),
    ],
    ids=["dataset", "PyDataset"],
)
def test_steps_of_an_epoch_are_one_pass_over_the_rows(endless):
    with pytest.warns(UserWarning, match="3 steps of an epoch are taken for one pass"):
        assert training_rows(endless(), None, steps_per_epoch=3).size == 10


def test_a_generator_keeps_the_batch_that_was_counted():
    batches = ((X[i : i + 2], Y[i : i + 2]) for i in range(0, 10, 2))
    with pytest.warns(UserWarning, match="5 steps of an epoch"):
        again, size = rows_of_generator(batches, 5)
    assert size == 10
    np.testing.assert_array_equal(np.concatenate([y for _, y in again]), Y)


class Unreadable(keras.utils.PyDataset):
    num_batches = 3

    def __getitem__(self, index):
        raise AssertionError("the data were read")


def test_a_given_size_is_believed_and_nothing_read_for_it():
    assert training_rows(X, Y, dataset_size=50).size == 50
    rows = training_rows(Unreadable(), None, dataset_size=7.5, needs_targets=False)
    assert (rows.size, rows.targets) == (7.5, None)


def test_a_dataset_that_was_read_to_its_end_is_refused():
    stream = iter([(X[:5], Y[:5]), (X[5:], Y[5:])])
    shapes = tf.TensorSpec((None, 2)), tf.TensorSpec((None,))
    data = tf.data.Dataset.from_generator(lambda: stream, output_signature=shapes)
    with pytest.raises(ValueError, match=r"read only once.*likelihood\.adapt"):
        training_rows(data, None, dataset_size=10)


def test_batches_of_different_lengths_are_filled_up_with_targets_of_weight_0():
    batches = [(np.ones((2, n)), np.ones((2, n), int)) for n in (3, 5)]
    data = tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=(tf.TensorSpec((2, None)), tf.TensorSpec((2, None), tf.int64)),
    )
    rows = training_rows(data, None, dataset_size=4, num_places=1)
    assert rows.targets.shape == (4, 5)
    assert rows.counted.sum(axis=1).tolist() == [3, 3, 5, 5]
    assert rows.targets[rows.counted].all()


def test_weights_of_places_leave_n_the_number_of_rows():
    weights = np.array([[1.0, 0.0], [0.5, 1.0]])
    rows = training_rows(
        X[:2], np.zeros((2, 2)), sample_weight=weights[..., np.newaxis], num_places=1
    )
    assert rows.size == 2
    np.testing.assert_array_equal(rows.target_weights, weights)


def test_a_mask_leaves_places_out():
    mask = np.array([[True, False], [True, True]])
    rows = training_rows(
        X[:2],
        np.zeros((2, 2)),
        sample_weight=np.array([1.0, 2.0]),
        num_places=1,
        mask=lambda inputs: mask,
    )
    assert rows.size == 3
    np.testing.assert_array_equal(rows.target_weights, [[1.0, 0.0], [2.0, 2.0]])


@pytest.mark.parametrize("weight", [1e-3, 20.0])
def test_weights_that_are_hardly_counts_are_told(weight):
    weights = np.where(np.arange(10) < 5, weight, 0.0)
    with pytest.warns(UserWarning, match=f"mean of these weights is {weight:.3g}"):
        training_rows(X, Y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training_rows(X, Y, sample_weight=weights, dataset_size=weights.sum())
        training_rows(X, Y, sample_weight=np.arange(10) < 2)


def test_endless_dataset_gives_targets_of_its_stated_rows():
    rows = training_rows(dataset().repeat(), None, dataset_size=10)
    np.testing.assert_array_equal(rows.targets, Y)
    assert training_rows(generator(), None, dataset_size=10).targets is None


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


def test_validation_data_overrides_the_split():
    inputs = keras.Input((2,))
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))
    model.compile(run_eagerly=True)
    model.fit(X, Y, validation_split=0.5, validation_data=(X, Y), verbose=0)
    assert model.num_rows == 10


def test_several_weights_of_a_row_are_refused():
    with pytest.raises(ValueError, match=r"one sample weight.*shape \(10, 2\)"):
        training_rows(X, Y, sample_weight=np.ones((10, 2)))


@pytest.mark.parametrize("x", [X.tolist(), {"a": X, "b": X[:, 0].tolist()}])
def test_inputs_that_are_lists_of_numbers_are_refused(x):
    with pytest.raises(ValueError, match=r"Pass `np.asarray\(x\)`.*of type float"):
        training_rows(x, Y)
