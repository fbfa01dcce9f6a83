"""A prediction takes the datasets that `fit` takes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.layers import DenseVariational

X = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
Y = X[:, :1]
WEIGHTS = np.ones(20)
SLICES = tf.data.Dataset.from_tensor_slices


class Sequence(keras.utils.PyDataset):
    """Batches of five rows."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        rows = slice(5 * index, 5 * index + 5)
        return X[rows], Y[rows]


class Endless(Sequence):
    @property
    def num_batches(self):
        return None


@pytest.fixture(scope="module")
def model():
    inputs = keras.Input((3,))
    return tfbbb.BayesianModel(inputs, DenseVariational(1)(inputs))


@pytest.mark.parametrize(
    "data",
    [
        lambda: SLICES(X).batch(6),
        lambda: SLICES((X, Y)).batch(6),
        lambda: SLICES((X, Y, WEIGHTS)).batch(20),
        lambda: SLICES((X, Y)).filter(lambda x, y: True).batch(6),
        lambda: SLICES(X).batch(5).repeat(3).take(4),
        Sequence,
        lambda: (X[row : row + 7] for row in range(0, 20, 7)),
        lambda: ([X[row : row + 7], Y[row : row + 7]] for row in range(0, 20, 7)),
        lambda: iter(SLICES((X, Y)).batch(6)),
    ],
)
def test_dataset_is_predicted_as_its_rows(model, data):
    expected = model.predictive(X, method="local").mean
    found = model.predictive(data(), method="local").mean
    np.testing.assert_array_equal(found, expected)


def test_recalibration_takes_the_targets_of_a_dataset(model):
    expected = model.recalibrate(X, Y)
    assert repr(model.recalibrate(SLICES((X, Y)).batch(6))) == repr(expected)
    for arguments in [(SLICES(X).batch(6),), (X,)]:
        with pytest.raises(ValueError, match=r"need targets.*Received: x of type"):
            model.recalibrate(*arguments)
    with pytest.raises(ValueError, match=r"leave `y` out.*Received"):
        model.recalibrate(SLICES((X, Y)).batch(6), Y)
    weights, method = np.arange(20.0), "conformal_intervals"
    weighted = model.recalibrate(X, Y, method, sample_weight=weights)
    assert weighted.num_rows < 20
    of_batches = SLICES((X, Y, weights)).batch(6)
    assert model.recalibrate(of_batches, None, method) == weighted
    with pytest.raises(ValueError, match=r"leave `sample_weight` out.*Received"):
        model.recalibrate(of_batches, sample_weight=weights)
    model.recalibration = None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SLICES(X).batch(6).repeat(), r"it must end.*Received: .*without end"),
        (Endless(), r"it must end.*Received: x of type Endless without end"),
        (iter([]), r"There are no rows.*Received: x of type list_iterator"),
        (SLICES(WEIGHTS), r"by `dataset\.batch\(32\)`\. Received"),
        (iter([X, Y]), r"Every batch needs the same structure.*Received"),
    ],
)
def test_what_is_no_finite_dataset_of_batches_is_refused(model, data, message):
    with pytest.raises(ValueError, match=message):
        model.predictive(data)
