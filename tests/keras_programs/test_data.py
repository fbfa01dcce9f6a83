"""Forms of data: arrays, datasets, generators, and the number of rows N of each."""

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf

import tfbbb
from tests.keras_programs.twins import (
    CONSTANT,
    assert_same_weights,
    regression,
    twins,
)
from tfbbb.prediction.gathered import SparseRows

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(50, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(50, 1)).astype("float32")
ROWS = tf.data.Dataset.from_tensor_slices((X, Y))


def bayesian(likelihood="normal", **options):
    """Returns a model whose weights have a posterior, and so a divergence."""
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(1, **options)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    model.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return model


@pytest.fixture(scope="module")
def unchanged():
    """A model that was fitted without a change of its weights, and its twin."""
    model, twin = twins(regression, rate=0.0)
    model.fit(X, Y, verbose=0)
    return model, twin


def kl_weight(model):
    return float(model.variational_layers[0].kl_weight.numpy())


class Batches(keras.utils.PyDataset):
    """Batches of 8 rows, of which the last has 2."""

    def __len__(self):
        return 7

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return X[rows], Y[rows]


def stream(rows=50, size=10):
    """Returns a dataset over an iterator, which can be read only once."""
    batches = iter([(X[i : i + size], Y[i : i + size]) for i in range(0, rows, size)])
    shapes = tf.TensorSpec((None, 3)), tf.TensorSpec((None, 1))
    return tf.data.Dataset.from_generator(lambda: batches, output_signature=shapes)


# Data, the steps of an epoch, and arguments of `fit`.
FORMS = {
    "endless": (
        lambda: ROWS.shuffle(50).batch(10).repeat(),
        5,
        {"steps_per_epoch": 5, "dataset_size": 50},
    ),
    "sequence with workers": (lambda: Batches(workers=2), 7, {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_data_trains_on_its_rows(form):
    data, steps, options = FORMS[form]
    model = bayesian()
    history = model.fit(data(), verbose=0, **options).history
    assert model.num_rows == 50
    assert int(model.optimizer.iterations.numpy()) == steps
    np.testing.assert_allclose(kl_weight(model), 1 / 50, rtol=1e-6)
    np.testing.assert_allclose(
        history["loss"], np.add(history["nll"], np.divide(history["kl"], 50)), rtol=1e-5
    )


def test_stream_gives_the_steps_of_arrays():
    of_stream, of_arrays = (twins(regression)[0] for _ in range(2))
    of_arrays.set_weights(of_stream.get_weights())
    of_stream.likelihood.adapt(Y)
    of_stream.fit(stream(), dataset_size=50, verbose=0)
    of_arrays.fit(X, Y, batch_size=10, shuffle=False, verbose=0)
    assert_same_weights(of_stream, of_arrays, rtol=1e-6)


def test_last_partial_batch_counts_by_its_rows(unchanged):
    model, twin = unchanged
    history = model.fit(X, Y, batch_size=16, verbose=0).history
    expected = twin.evaluate(X, Y, batch_size=16, verbose=0)
    np.testing.assert_allclose(history["nll"][0] - CONSTANT, expected, rtol=1e-4)


def sparse_data():
    """Returns inputs that are mostly 0, and the same inputs as sparse batches."""
    x = np.where(RANDOM.uniform(size=(40, 6)) < 0.3, RANDOM.normal(size=(40, 6)), 0.0)
    x = x.astype("float32")
    y = x[:, :1] + 1.0
    rows = tf.data.Dataset.from_tensor_slices((tf.sparse.from_dense(x), y))
    return x, y, rows.batch(8)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("estimator", "members"),
    [("local", 1), (tfbbb.estimators.Weight(num_samples=2), 2)],
)
def test_sparse_inputs_train_and_predict_as_dense_ones(estimator, members):
    x, y, batches = sparse_data()
    models = []
    for sparse in (False, True):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((6,), sparse=sparse)
        layer = tfbbb.layers.DenseVariational(1, estimator=estimator, seed=1)
        model = tfbbb.BayesianModel(inputs, layer(inputs), members=members)
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        if sparse:
            model.fit(batches, verbose=0)
        else:
            model.fit(x, y, batch_size=8, shuffle=False, verbose=0)
        models.append(model)
    dense, sparse = models
    for ours, theirs in zip(sparse.get_weights(), dense.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    expected = sparse.predictive(x).mean
    for rows in (batches, tf.sparse.from_dense(x), scipy.sparse.csr_matrix(x)):
        np.testing.assert_array_equal(sparse.predictive(rows).mean, expected)


def test_predictions_of_sparse_rows_hold_one_dense_block(monkeypatch):
    x, _, _ = sparse_data()
    inputs = keras.Input((6,), sparse=True)
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    sizes, rows_of = [], SparseRows.__getitem__

    def counted(self, rows):
        block = rows_of(self, rows)
        sizes.append(len(block))
        return block

    monkeypatch.setattr(SparseRows, "__getitem__", counted)
    monkeypatch.setattr(SparseRows, "__array__", None)
    model.predictive(scipy.sparse.csr_matrix(x), 4, max_memory_mb=0.01)
    assert sum(sizes) == 40 > 4 * max(sizes)
