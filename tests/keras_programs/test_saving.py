"""Files of models and weights, and models that leave Keras."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.keras_programs.twins import (
    POINT,
    assert_same_weights,
    regression,
    squared_error,
    twins,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
Y = 10 * X[:, :1] - 3 * RANDOM.normal(size=(40, 1)).astype("float32")
TOKENS = RANDOM.integers(1, 6, (12, 4))


def bayesian(members=None, **options):
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, "tanh")(inputs)
    outputs = tfbbb.layers.DenseVariational(1)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, members=members)
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=True, **options)
    return model


def fitted(**options):
    model = bayesian(**options)
    model.fit(X, Y, epochs=2, verbose=0)
    return model


def assert_same_predictions(loaded, model, x=X):
    ours, theirs = loaded.predictive(x), model.predictive(x)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-5)
    np.testing.assert_allclose(ours.variance, theirs.variance, rtol=1e-4)


def test_saved_model_loads_and_predicts_alike(tmp_path):
    model = fitted(members=2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is tfbbb.BayesianModel
    assert_same_predictions(loaded, model)


def test_loaded_model_trains_on_as_if_never_saved(tmp_path):
    model, _ = twins(regression, optimizer=lambda: keras.optimizers.Adam(0.05))
    model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    loaded.compile(loaded.optimizer, run_eagerly=True)
    for each in (model, loaded):
        each.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    assert_same_weights(loaded, model, rtol=1e-6)


@pytest.mark.slow
def test_model_loads_without_its_compilation(tmp_path):
    model = fitted(metrics=["mae"])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", compile=False)
    assert not loaded.compiled
    assert_same_predictions(loaded, model)


def by_file_of_weights(model, other, path):
    model.save_weights(path / "model.weights.h5")
    other.load_weights(path / "model.weights.h5")


def by_checkpoint_of_tensorflow(model, other, path):
    saved = tf.train.Checkpoint(model=model).save(path / "checkpoint")
    tf.train.Checkpoint(model=other).restore(saved).expect_partial()


def by_list_of_arrays(model, other, path):
    other.set_weights(model.get_weights())


@pytest.mark.parametrize(
    "restore", [by_file_of_weights, by_checkpoint_of_tensorflow, by_list_of_arrays]
)
def test_weights_restore_a_new_model(restore, tmp_path):
    model, other = fitted(), bayesian()
    restore(model, other, tmp_path)
    assert_same_predictions(other, model)
    assert other.num_rows == 40


def test_metrics_and_schedule_come_back_with_the_model(tmp_path):
    model = fitted(metrics=["mae"], kl_schedule="linear_warmup")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    figures = loaded.evaluate(X, Y, verbose=0, return_dict=True)
    assert {"loss", "nll", "kl", "mae"} <= set(figures)
    assert type(loaded.kl_schedule) is type(model.kl_schedule)


def test_plain_network_is_saved_with_its_divergence(tmp_path):
    network = keras.Sequential(
        [keras.Input((3,)), tfbbb.layers.DenseVariational(1, kl_weight=1 / 40)]
    )
    network.compile("sgd", loss=tfbbb.losses.NegativeLogLikelihood(squared_error()))
    network.save(tmp_path / "plain.keras")
    loaded = keras.models.load_model(tmp_path / "plain.keras")
    network(X), loaded(X)
    np.testing.assert_allclose(sum(loaded.losses), sum(network.losses), rtol=1e-6)


def test_former_format_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"`\.keras`"):
        bayesian().save(tmp_path / "model.h5")


@pytest.mark.usefixtures("compiled_functions")
def test_tensorflow_saves_a_network_with_our_layers(tmp_path):
    layer = tfbbb.layers.DenseVariational(1, kl_weight=1 / 40, **POINT)
    network = keras.Sequential([keras.Input((3,)), layer])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The exported call")  # points draw nothing
        tf.saved_model.save(network, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    served = loaded.signatures["serving_default"](tf.constant(X))
    np.testing.assert_allclose(next(iter(served.values())), network(X), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_functions")
def test_keras_export_is_the_predictive(tmp_path):
    model = fitted()
    model.export(tmp_path / "exported" / "1", verbose=False)
    assert_same_predictions(tfbbb.load(tmp_path / "exported"), model)


@pytest.mark.usefixtures("compiled_functions")
def test_exported_model_of_tokens_answers_as_the_model(tmp_path):
    inputs = keras.Input((4,), dtype="int32")
    hidden = keras.layers.Flatten()(tfbbb.layers.EmbeddingVariational(6, 2)(inputs))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile("adam", run_eagerly=True)
    model.fit(TOKENS, TOKENS.sum(axis=1), verbose=0)
    model.export_predictive(tmp_path / "tokens" / "1")
    loaded = tfbbb.load(tmp_path / "tokens")
    for x in (TOKENS, TOKENS.astype("int32"), TOKENS.tolist()):
        mean = loaded.predictive(np.asarray(x)).mean
        np.testing.assert_allclose(mean, model.predictive(TOKENS).mean, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_functions")
def test_exported_model_of_images_answers_as_the_model(tmp_path):
    inputs = keras.Input((4, 4, 1))
    hidden = keras.layers.Flatten()(tfbbb.layers.Conv2DVariational(2, 3)(inputs))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.compile("adam", run_eagerly=True)
    images = RANDOM.normal(size=(12, 4, 4, 1)).astype("float32")
    model.fit(images, images.sum(axis=(1, 2, 3)), verbose=0)
    model.export_predictive(tmp_path / "images" / "1")
    assert_same_predictions(tfbbb.load(tmp_path / "images"), model, images)


def test_part_of_a_model_keeps_its_weights(tmp_path):
    model = fitted()
    features = keras.Model(model.inputs, model.layers[1].output)
    features.save(tmp_path / "features.keras")
    loaded = keras.models.load_model(tmp_path / "features.keras")
    ours, theirs = (
        loaded.layers[1].variational_weights,
        model.layers[1].variational_weights,
    )
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.mean, other.mean)


def test_summary_and_picture_name_the_layers():
    lines = []
    bayesian().summary(print_fn=lambda line, line_break=False: lines.append(line))
    assert sum("DenseVariational" in line for line in "\n".join(lines).split("\n")) == 2
