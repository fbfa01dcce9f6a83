"""Metrics of Keras on a `BayesianModel`, for each form of targets."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.keras_programs.twins import CONSTANT, copy_weights, twins

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3)).astype("float32")
BINARY = (X[:, 0] + 0.5 * RANDOM.normal(size=60) > 0).astype("float32")
CLASSES = np.argmax(X + 0.5 * RANDOM.normal(size=X.shape), axis=1)
NUMBERS = (X @ RANDOM.normal(size=(3, 2)) + 2.0).astype("float32")
metrics = keras.metrics


def dense(units):
    def network(layers):
        inputs = keras.Input((3,))
        return inputs, layers.Dense(units)(layers.Dense(5, "tanh")(inputs))

    return network


def same_metrics(network, kind, made, x, y, theirs_y=None):
    """Asserts that a model and its Keras twin report the same metrics."""
    model, twin = twins(network, kind, rate=0.0, metrics=made)
    history = model.fit(x, y, batch_size=25, verbose=0, validation_data=(x, y)).history
    theirs = twin.evaluate(
        x,
        y if theirs_y is None else theirs_y,
        batch_size=25,
        verbose=0,
        return_dict=True,
    )
    theirs.pop("loss")
    assert theirs
    for name, value in theirs.items():
        for key in (name, f"val_{name}"):
            np.testing.assert_allclose(history[key][0], value, rtol=2e-4, atol=1e-5)
    return model


@pytest.mark.parametrize(
    "shape",
    [pytest.param((60,), marks=pytest.mark.slow), (60, 1)],
    ids=["vector", "column"],
)
def test_binary_metrics_equal_those_of_a_sigmoid(shape):
    def made():
        return [
            metrics.BinaryAccuracy(name="a"),
            metrics.AUC(name="b"),
            metrics.AUC(curve="PR", name="c"),
            metrics.Precision(name="d"),
            metrics.Recall(name="e"),
            metrics.BinaryCrossentropy(name="f"),
            metrics.MeanSquaredError(name="g"),
            metrics.TruePositives(name="h"),
            metrics.FalseNegatives(name="i"),
            metrics.SpecificityAtSensitivity(0.5, name="j"),
            "accuracy",
        ]

    same_metrics(dense(1), "bernoulli", made, X, BINARY.reshape(shape), BINARY[:, None])


def test_f1_score_of_two_classes():
    y = BINARY[:, None]
    same_metrics(
        dense(1), "bernoulli", lambda: [metrics.F1Score(threshold=0.5, name="f1")], X, y
    )


@pytest.mark.slow
def test_boolean_labels_are_classes():
    y = BINARY[:, None] > 0
    same_metrics(
        dense(1), "bernoulli", lambda: ["accuracy", metrics.AUC(name="auc")], X, y
    )


@pytest.mark.parametrize(
    "shape",
    [pytest.param((60,), marks=pytest.mark.slow), (60, 1)],
    ids=["vector", "column"],
)
def test_metrics_of_class_indices_equal_those_of_a_softmax(shape):
    def made():
        return [
            "accuracy",
            metrics.SparseCategoricalAccuracy(name="a"),
            metrics.SparseTopKCategoricalAccuracy(2, name="b"),
            metrics.SparseCategoricalCrossentropy(name="c"),
        ]

    same_metrics(
        dense(3), "categorical", made, X, CLASSES.reshape(shape), CLASSES[:, None]
    )


def test_metrics_of_one_hot_classes_equal_those_of_a_softmax():
    def made():
        return [
            "accuracy",
            metrics.CategoricalAccuracy(name="a"),
            metrics.TopKCategoricalAccuracy(2, name="b"),
            metrics.CategoricalCrossentropy(name="c"),
            metrics.AUC(multi_label=True, num_labels=3, name="d"),
            metrics.Precision(class_id=1, name="e"),
            metrics.F1Score(average="macro", name="f"),
        ]

    same_metrics(dense(3), "one-hot", made, X, keras.utils.to_categorical(CLASSES, 3))


@pytest.mark.parametrize(
    "targets", [pytest.param("vector", marks=pytest.mark.slow), "column", "two targets"]
)
def test_metrics_of_numbers_are_in_raw_units(targets):
    y = {"vector": NUMBERS[:, 0], "column": NUMBERS[:, :1], "two targets": NUMBERS}[
        targets
    ]

    def made():
        return [
            "mse",
            "mae",
            "mape",
            "msle",
            "cosine_similarity",
            metrics.R2Score(name="r2"),
        ]

    same_metrics(dense(np.size(y) // 60), "normal", made, X, y, y.reshape(60, -1))


def test_metric_that_is_a_function():
    def largest_error(y, predicted):
        return keras.ops.max(keras.ops.abs(y - predicted), axis=-1)

    same_metrics(dense(2), "normal", lambda: [largest_error], X, NUMBERS)


def test_metrics_of_standardised_targets_are_in_raw_units():
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    model.compile(keras.optimizers.SGD(0.0), metrics=["mse"], run_eagerly=True)
    y = 1000.0 + 50.0 * X[:, :1]
    model.fit(X, y, verbose=0)
    mse = model.evaluate(X, y, verbose=0, return_dict=True)["mse"]
    error = np.mean((model.predict(X, verbose=0) - y) ** 2)
    # Both draw anew: weights vary by 2 % of a target's standard deviation.
    np.testing.assert_allclose(mse, error, rtol=0.2)


def test_rates_of_counts_are_compared_with_counts():
    inputs = keras.Input((3,))
    layer = tfbbb.layers.DenseVariational(1, posterior="point", bias_posterior="point")
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood="poisson")
    model.compile(keras.optimizers.SGD(0.0), metrics=["mae"], run_eagerly=True)
    y = RANDOM.poisson(3.0, size=(60, 1))
    mae = model.fit(X, y, verbose=0).history["mae"][0]
    rates = model.predictive(X).mean
    np.testing.assert_allclose(mae, np.abs(rates - y).mean(), rtol=1e-4)


def test_labels_of_a_row_have_their_metrics():
    y = (X + 0.3 * RANDOM.normal(size=X.shape) > 0).astype("float32")

    def labels(layers):
        inputs = keras.Input((3,))
        return inputs, layers.Reshape((3, 1))(layers.Dense(3)(inputs))

    def flat(layers):
        inputs = keras.Input((3,))
        return inputs, layers.Dense(3)(inputs)

    made = [metrics.BinaryAccuracy(name="a"), metrics.AUC(name="b")]
    model, _ = twins(labels, "bernoulli", rate=0.0, metrics=lambda: made)
    history = model.fit(X, y, verbose=0).history
    flat_model = keras.Model(*flat(keras.layers))
    copy_weights(model, flat_model)
    probabilities = 1 / (1 + np.exp(-flat_model.predict(X, verbose=0)))
    for metric in (metrics.BinaryAccuracy(name="a"), metrics.AUC(name="b")):
        metric.update_state(y, probabilities)
        np.testing.assert_allclose(history[metric.name][0], metric.result(), rtol=1e-4)


@pytest.mark.parametrize(
    "kind", ["categorical", pytest.param("one-hot", marks=pytest.mark.slow)]
)
def test_pixels_have_their_metrics(kind):
    images = RANDOM.normal(size=(4, 5, 5, 2)).astype("float32")
    y = (images[..., 0] > 0).astype("int32")
    sparse = kind == "categorical"

    def network(layers):
        inputs = keras.Input((5, 5, 2))
        return inputs, layers.Conv2D(2, 3, padding="same")(inputs)

    def made():
        iou = metrics.MeanIoU(2, sparse_y_true=sparse, sparse_y_pred=False, name="iou")
        return ["accuracy", iou]

    targets = y if sparse else keras.utils.to_categorical(y, 2)
    same_metrics(network, kind, made, images, targets)


def test_steps_of_a_series_have_their_metrics():
    x = RANDOM.normal(size=(8, 7, 2)).astype("float32")

    def network(layers):
        inputs = keras.Input((7, 2))
        return inputs, layers.Dense(1)(layers.Dense(4, "tanh")(inputs))

    model = same_metrics(network, "normal", lambda: ["mse", "mae"], x, x[..., :1] + 1)
    figures = model.evaluate(x, x[..., :1] + 1, verbose=0, return_dict=True)
    np.testing.assert_allclose(
        figures["nll"], 7 * (figures["mse"] + CONSTANT), rtol=1e-5
    )


@pytest.mark.slow
def test_metrics_of_several_epochs_start_anew():
    model, twin = twins(
        dense(1), "bernoulli", metrics=lambda: ["accuracy", metrics.AUC(name="auc")]
    )
    ours = model.fit(X, BINARY[:, None], epochs=3, shuffle=False, verbose=0).history
    theirs = twin.fit(X, BINARY[:, None], epochs=3, shuffle=False, verbose=0).history
    for name in ("accuracy", "auc"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-3)
    np.testing.assert_allclose(ours["nll"], theirs["loss"], rtol=1e-4)


def test_members_are_averaged_before_a_metric_sees_them():
    model, _ = twins(
        dense(1), "bernoulli", rate=0.0, members=3, metrics=lambda: ["mse"]
    )
    for weight in model.variational_layers[-1].variational_weights:
        mean = weight.variables["mean"]
        mean.assign(RANDOM.normal(size=mean.shape))
    mse = model.fit(X, BINARY[:, None], verbose=0).history["mse"][0]
    mean = np.mean([m.predictive(X).probabilities[:, 1] for m in model.members], axis=0)
    np.testing.assert_allclose(mse, np.mean((mean - BINARY) ** 2), rtol=1e-4)


@pytest.mark.slow
def test_multi_class_auc_needs_one_hot_targets():
    one_hot = keras.utils.to_categorical(CLASSES, 3)
    same_metrics(dense(3), "one-hot", lambda: [metrics.AUC(name="auc")], X, one_hot)


@pytest.mark.slow
def test_learned_noise_does_not_enter_the_mean():
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(
        2, posterior="point", bias_posterior="point"
    )(inputs)
    model = tfbbb.BayesianModel(
        inputs, outputs, likelihood=tfbbb.likelihoods.Normal(heteroscedastic=True)
    )
    model.compile(keras.optimizers.SGD(0.0), metrics=["mae"], run_eagerly=True)
    mae = model.fit(X, NUMBERS[:, :1], verbose=0).history["mae"][0]
    mean = model.predictive(X).mean
    np.testing.assert_allclose(mae, np.abs(mean - NUMBERS[:, :1]).mean(), rtol=1e-4)
