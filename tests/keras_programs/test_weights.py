"""Weights of rows, classes, steps and pixels, and classes that do not count."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.keras_programs.twins import (
    POINTS,
    assert_same_weights,
    copy_weights,
    regression,
    twins,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = X[:, :1] - 0.3 * RANDOM.normal(size=(40, 1)).astype("float32")
LABELS = (X[:, 0] + X[:, 1] > 0.8).astype("int32")
WEIGHTS = RANDOM.integers(0, 4, 40).astype("float32")
IMAGES = RANDOM.normal(size=(4, 5, 5, 2)).astype("float32")
PIXELS = (IMAGES[..., 0] > 0).astype("int32")
VOID = RANDOM.random(PIXELS.shape) < 0.3


def classifier(layers):
    inputs = keras.Input((3,))
    return inputs, layers.Dense(2)(layers.Dense(4, "tanh")(inputs))


def segmenter(layers):
    inputs = keras.Input((5, 5, 2))
    hidden = layers.Conv2D(3, 3, padding="same", activation="relu")(inputs)
    return inputs, layers.Conv2D(2, 1)(hidden)


def nll(model, *data, **options):
    return model.evaluate(*data, verbose=0, return_dict=True, **options)["nll"]


@pytest.fixture(scope="module")
def regressions():
    """A model that was fitted without a change of its weights, and its twin."""
    made = {
        "metrics": lambda: ["mse"],
        "weighted_metrics": lambda: ["mae", keras.metrics.RootMeanSquaredError("rmse")],
    }
    model, twin = twins(regression, rate=0.0, **made)
    model.fit(X, Y, verbose=0)
    return model, twin


def trained(network, kind, *data, **options):
    keras.utils.set_random_seed(1)
    model, _ = twins(network, kind)
    model.fit(*data, epochs=2, batch_size=64, shuffle=False, verbose=0, **options)
    return model


def per_pixel(twin):
    """Returns -log p of each pixel, from the probabilities of the Keras twin."""
    chosen = np.take_along_axis(twin.predict(IMAGES, verbose=0), PIXELS[..., None], -1)
    return -np.log(chosen[..., 0])


def test_row_of_weight_three_counts_as_three_rows(regressions):
    model, _ = regressions
    copies = np.repeat(np.arange(40), WEIGHTS.astype(int))
    np.testing.assert_allclose(
        nll(model, X, Y, sample_weight=WEIGHTS, batch_size=40),
        nll(model, X[copies], Y[copies], batch_size=200),
        rtol=1e-5,
    )


def test_rows_of_weight_zero_train_as_if_left_out():
    kept = WEIGHTS > 0
    weighted = trained(regression, "normal", X, Y, sample_weight=kept.astype("float32"))
    assert_same_weights(weighted, trained(regression, "normal", X[kept], Y[kept]))


@pytest.mark.parametrize("form", ["dataset", "generator"])
def test_weights_may_come_with_the_batches(form, regressions):
    def batches():
        for i in range(0, 40, 10):
            yield X[i : i + 10], Y[i : i + 10], WEIGHTS[i : i + 10]

    data = {
        "dataset": tf.data.Dataset.from_tensor_slices((X, Y, WEIGHTS)).batch(10),
        "generator": batches(),
    }[form]
    model, _ = regressions
    size = {"dataset_size": 40} if form == "generator" else {}
    history = model.fit(data, verbose=0, **size).history
    expected = nll(model, X, Y, sample_weight=WEIGHTS, batch_size=10)
    np.testing.assert_allclose(history["nll"][0], expected, rtol=1e-5)


def test_members_use_the_weights_of_rows_each(regressions):
    single, _ = regressions
    model, _ = twins(regression, rate=0.0, members=2)
    copy_weights(single, model)
    model.fit(X, Y, verbose=0)
    np.testing.assert_allclose(
        nll(model, X, Y, sample_weight=WEIGHTS, batch_size=40),
        nll(single, X, Y, sample_weight=WEIGHTS, batch_size=40),
        rtol=1e-5,
    )


def test_void_class_does_not_count():
    likelihood = tfbbb.likelihoods.Categorical(ignore_class=255)
    model = tfbbb.BayesianModel(*segmenter(POINTS), likelihood=likelihood, members=4)
    _, twin = twins(segmenter, "categorical")
    copy_weights(twin, model)
    model.compile(keras.optimizers.SGD(0.0), metrics=["accuracy"], run_eagerly=True)
    history = model.fit(IMAGES, np.where(VOID, 255, PIXELS), verbose=0).history
    expected = (per_pixel(twin) * ~VOID).sum() / len(IMAGES)
    np.testing.assert_allclose(history["nll"][0], expected, rtol=1e-5)
    right = twin.predict(IMAGES, verbose=0).argmax(-1) == PIXELS
    np.testing.assert_allclose(history["accuracy"][0], right[~VOID].mean(), rtol=1e-5)
