"""Curvature of a batch against derivatives of one row after the other."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb import layers, likelihoods
from tfbbb.inference.batches import Batches
from tfbbb.inference.curvature import curvature
from tfbbb.inference.network_function import NetworkFunction

N = 11
GENERATOR = np.random.default_rng(0)
NUMBERS = GENERATOR.normal(size=(N, 3)).astype("float32")
STEPS = GENERATOR.normal(size=(N, 5, 2)).astype("float32")
IMAGES = GENERATOR.normal(size=(N, 4, 4, 2)).astype("float32")
WORDS = GENERATOR.integers(0, 4, size=(N, 3))
CLASSES = GENERATOR.integers(0, 3, size=N)
WEIGHTS = GENERATOR.uniform(0.5, 2.0, size=N)
ZERO = {"unconnected_gradients": "zero"}


def network(name):
    """Returns layers, inputs, targets and likelihood of a small model."""
    dense, conv = layers.DenseVariational, layers.Conv2DVariational
    first = NUMBERS[:, :1] ** 2
    shared = dense(3, "tanh")
    return {
        "heteroscedastic": (
            [dense(3, "tanh"), dense(2)],
            NUMBERS,
            first,
            likelihoods.Normal(heteroscedastic=True),
        ),
        "vector": (
            [dense(3, "tanh"), dense(2)],
            NUMBERS,
            NUMBERS[:, :2] ** 2,
            likelihoods.MultivariateNormal(),
        ),
        "classes": ([dense(3, "tanh"), dense(3)], NUMBERS, CLASSES, "categorical"),
        "student_t": ([dense(2, "tanh"), dense(1)], NUMBERS, first, "student_t"),
        "images": (
            [
                conv(2, 3, activation="tanh", padding="same"),
                keras.layers.Flatten(),
                dense(3),
            ],
            IMAGES,
            CLASSES,
            "categorical",
        ),
        "steps": (
            [
                layers.Conv1DVariational(2, 2, activation="tanh", padding="causal"),
                dense(2, "tanh"),
                keras.layers.GlobalAveragePooling1D(),
                dense(1),
            ],
            STEPS,
            first,
            "normal",
        ),
        "recurrent": ([layers.LSTMVariational(1), dense(1)], STEPS, first, "normal"),
        "words": (
            [layers.EmbeddingVariational(4, 2), keras.layers.Flatten(), dense(1)],
            WORDS,
            first,
            "normal",
        ),
        "shared": ([shared, shared, dense(1)], NUMBERS, first, "normal"),
    }[name]


def built(name):
    keras.utils.set_random_seed(1)
    operations, x, y, likelihood = network(name)
    tensor = inputs = keras.Input(x.shape[1:])
    for operation in operations:
        tensor = operation(tensor)
    model = tfbbb.BayesianModel(inputs, tensor, likelihood=likelihood)
    model.likelihood.adapt(y)
    return model, x, y


def row_by_row(model, x, y, kind):
    """Returns the sum over the rows of their curvature, [D, D]."""
    network = NetworkFunction(model)
    values = network.split(network.means())

    def joined(parts):
        flat = [tf.reshape(tf.cast(part, tf.float64), [-1]) for part in parts]
        return tf.concat(flat, axis=0)

    size = int(np.prod(model.output_shape[1:]))
    specs = [tf.TensorSpec([None, *a.shape[1:]], a.dtype) for a in (x, y)]

    @tf.function(input_signature=specs)
    def of_row(row, target):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(values)
            with tf.GradientTape() as inner:
                inner.watch(values)
                log_prob = tf.reduce_sum(network.log_likelihood(values, row, target))
            gradient = network.join(inner.gradient(log_prob, values))[0]
            outputs = tf.reshape(network.outputs(values, row), [size])
            each = tf.unstack(outputs)
        if kind == "empirical_fisher":
            gradient = tf.cast(gradient, tf.float64)
            return gradient[:, tf.newaxis] * gradient
        rows = [joined(outer.gradient(one, values, **ZERO)) for one in each]
        jacobian = tf.stack(rows)
        seconds = second_derivatives(model.likelihood, outputs, target)
        eigenvalues, vectors = tf.linalg.eigh(seconds)
        kept = (vectors * tf.maximum(eigenvalues, 0.0)) @ tf.transpose(vectors)
        return tf.transpose(jacobian) @ kept @ jacobian

    return sum(
        weight * of_row(x[i : i + 1], y[i : i + 1]).numpy()
        for i, weight in enumerate(WEIGHTS)
    )


def second_derivatives(likelihood, outputs, target):
    flat = tf.cast(outputs, tf.float64)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(flat)
        with tf.GradientTape() as inner:
            inner.watch(flat)
            loss = likelihood.negative_log_likelihood(target, flat[tf.newaxis])
        each = tf.unstack(inner.gradient(loss, flat))
    return tf.stack([outer.gradient(one, flat, **ZERO) for one in each])


def summed(model, x, y, structure, kind, batch_size=4):
    batches = Batches(x, y, WEIGHTS, batch_size)
    return curvature(
        NetworkFunction(model), model.variational_layers, batches, structure, kind
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[(name, "ggn") for name in ("heteroscedastic", "vector", "classes")],
        ("student_t", "ggn"),
        *[(name, "ggn") for name in ("images", "steps", "recurrent", "shared")],
        ("words", "empirical_fisher"),
        ("classes", "empirical_fisher"),
    ],
)
def test_curvature_is_the_sum_over_the_rows(name, kind):
    model, x, y = built(name)
    exact = row_by_row(model, x, y, kind)
    # Single precision of the derivatives.
    close = {"rtol": 0, "atol": 2e-6 * np.abs(exact).max()}
    full = summed(model, x, y, "full", kind)
    np.testing.assert_allclose(full.blocks[0].matrix, exact, **close)
    diagonal = summed(model, x, y, "diagonal", kind)
    values = np.concatenate([block.values for block in diagonal.blocks])
    np.testing.assert_allclose(values, np.diagonal(exact), **close)


def test_many_batches_give_the_sums_of_one(monkeypatch):
    model, x, y = built("classes")
    one = summed(model, x, y, "full", "ggn", batch_size=N)
    # The step is traced.
    monkeypatch.setattr(tfbbb.inference.curvature, "_BATCHES_WORTH_A_TRACE", 2)
    many = summed(model, x, y, "full", "ggn", batch_size=4)
    np.testing.assert_allclose(
        many.blocks[0].matrix, one.blocks[0].matrix, rtol=0, atol=1e-5
    )
    assert many.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-7)


def test_kronecker_factors_of_a_convolution_are_those_of_patches():
    model, x, y = built("images")
    first, bias = summed(model, x, y, "kron", "ggn").blocks[:2]
    # A 3 x 3 kernel sees a patch at each of 4 x 4 places, zeros beyond the border.
    padded = np.pad(x.astype(float), [(0, 0), (1, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    patches = windows.transpose(0, 1, 2, 4, 5, 3).reshape(N, 16, 18)
    expected = np.einsum("n,npi,npj->ij", WEIGHTS / 16, patches, patches)
    np.testing.assert_allclose(first.rows, expected / WEIGHTS.sum(), rtol=1e-5)
    # The bias meets the signals of all places of a row.
    full = summed(model, x, y, "full", "ggn").blocks[0].matrix
    own = slice(36, 38)
    np.testing.assert_allclose(bias.columns, full[own, own], rtol=1e-5, atol=1e-7)


def test_a_negative_row_weight_is_refused():
    model, x, y = built("classes")
    batches = Batches(x, y, np.where(np.arange(N) == 3, -0.5, WEIGHTS), 4)
    with pytest.raises(ValueError, match="cannot be negative"):
        curvature(
            NetworkFunction(model), model.variational_layers, batches, "kron", "ggn"
        )
