"""Metrics of Keras on a `BayesianModel`, for each form of targets."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.keras_programs.twins import CONSTANT, POINT, copy_weights, twins

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


def same_metrics(network, kind, made, x, y):
    """Asserts that a model and its Keras twin report the same metrics."""
    model, twin = twins(network, kind, rate=0.0, metrics=made)
    options = {"batch_size": 25, "verbose": 0}
    history = model.fit(x, y, validation_data=(x, y), **options).history
    column = y.reshape(-1, 1) if y.ndim == 1 else y
    theirs = twin.evaluate(x, column, return_dict=True, **options)
    theirs.pop("loss")
    assert theirs
    for name, value in theirs.items():
        for key in (name, f"val_{name}"):
            np.testing.assert_allclose(history[key][0], value, rtol=2e-4, atol=1e-5)
    return model


def of_two_classes():
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


def of_labels():
    return ["accuracy", metrics.AUC(name="auc")]


def of_class_indices():
    return [
        "accuracy",
        metrics.SparseCategoricalAccuracy(name="a"),
        metrics.SparseTopKCategoricalAccuracy(2, name="b"),
        metrics.SparseCategoricalCrossentropy(name="c"),
    ]


def of_one_hot_classes():
    return [
        "accuracy",
        metrics.CategoricalAccuracy(name="a"),
        metrics.TopKCategoricalAccuracy(2, name="b"),
        metrics.CategoricalCrossentropy(name="c"),
        metrics.AUC(multi_label=True, num_labels=3, name="d"),
        metrics.Precision(class_id=1, name="e"),
        metrics.F1Score(average="macro", name="f"),
    ]


def of_numbers():
    named = ["mse", "mae", "mape", "msle", "cosine_similarity"]
    return [*named, metrics.R2Score(name="r2")]


def of_a_function():
    def largest_error(y, predicted):
        return keras.ops.max(keras.ops.abs(y - predicted), axis=-1)

    return [largest_error]


def of_f1():
    return [metrics.F1Score(threshold=0.5, name="f1")]


ONE_HOT = keras.utils.to_categorical(CLASSES, 3)
slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "made", "y"),
    [
        ("bernoulli", of_two_classes, BINARY[:, None]),
        pytest.param("bernoulli", of_two_classes, BINARY, marks=slow),
        pytest.param("bernoulli", of_labels, BINARY[:, None] > 0, marks=slow),
        ("bernoulli", of_f1, BINARY[:, None]),
        ("categorical", of_class_indices, CLASSES[:, None]),
        pytest.param("categorical", of_class_indices, CLASSES, marks=slow),
        ("one-hot", of_one_hot_classes, ONE_HOT),
        pytest.param("one-hot", of_labels, ONE_HOT, marks=slow),
        ("normal", of_numbers, NUMBERS[:, :1]),
        ("normal", of_numbers, NUMBERS),
        pytest.param("normal", of_numbers, NUMBERS[:, 0], marks=slow),
        ("normal", of_a_function, NUMBERS),
    ],
)
def test_metrics_equal_those_of_the_twin(kind, made, y):
    units = {"categorical": 3, "one-hot": 3}.get(kind, y.size // 60)
    same_metrics(dense(units), kind, made, X, y)


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


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        ("poisson", RANDOM.poisson(3.0, size=(60, 1))),
        pytest.param(
            tfbbb.likelihoods.Normal(heteroscedastic=True), NUMBERS[:, :1], marks=slow
        ),
    ],
    ids=["rates", "learned noise"],
)
def test_means_are_compared_with_targets(likelihood, y):
    inputs = keras.Input((3,))
    layer = tfbbb.layers.DenseVariational(1 if likelihood == "poisson" else 2, **POINT)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    model.compile(keras.optimizers.SGD(0.0), metrics=["mae"], run_eagerly=True)
    mae = model.fit(X, y, verbose=0).history["mae"][0]
    means = model.predictive(X).mean
    np.testing.assert_allclose(mae, np.abs(means - y).mean(), rtol=1e-4)


def test_labels_of_a_row_have_their_metrics():
    y = (X + 0.3 * RANDOM.normal(size=X.shape) > 0).astype("float32")

    def flat(layers):
        inputs = keras.Input((3,))
        return inputs, layers.Dense(3)(inputs)

    def labels(layers):
        inputs, outputs = flat(layers)
        return inputs, layers.Reshape((3, 1))(outputs)

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
