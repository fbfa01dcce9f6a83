"""Copies of a model: clones, pickles, wrappers and build functions."""

import copy
import pickle

import keras
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import tfbbb
from tests.keras_programs.twins import squared_error

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(45, 3)).astype("float32")
Y = 100 + 20 * X[:, :1] + RANDOM.normal(size=(45, 1))
CLASSES = np.argmax(X, axis=1)
LIKELIHOODS = {
    "given scale": lambda: tfbbb.likelihoods.Normal(scale=3.0),
    "heteroscedastic": lambda: tfbbb.likelihoods.StudentT(heteroscedastic=True),
    "counts": lambda: tfbbb.likelihoods.Poisson(),
    "classes": lambda: tfbbb.likelihoods.Categorical(),
}


def bayesian(likelihood=None, units=1, members=None, **options):
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, "tanh")(inputs)
    outputs = tfbbb.layers.DenseVariational(units)(hidden)
    model = tfbbb.BayesianModel(
        inputs, outputs, likelihood=likelihood or "normal", members=members
    )
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=True, **options)
    return model


def fitted(**options):
    model = bayesian(**options)
    model.fit(X, Y, epochs=2, verbose=0)
    return model


@pytest.fixture(scope="module")
def ensemble():
    """A fitted model of two members, and its predictions."""
    model = fitted(members=2)
    return model, model.predictive(X)


def assert_same_predictions(copied, model, theirs=None):
    ours, theirs = copied.predictive(X), theirs or model.predictive(X)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-5)
    np.testing.assert_allclose(ours.variance, theirs.variance, rtol=1e-5)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_clone_has_the_likelihood_of_its_model(name):
    likelihood = LIKELIHOODS[name]()
    units = {"classes": 3, "heteroscedastic": 3}.get(name, 1)
    model = bayesian(likelihood, units)
    cloned = keras.models.clone_model(model)
    assert type(cloned.likelihood) is type(likelihood)
    assert cloned.likelihood is not likelihood
    config = {k: v for k, v in likelihood.get_config().items() if k != "name"}
    assert {k: cloned.likelihood.get_config()[k] for k in config} == config


def test_clone_with_the_weights_predicts_alike(ensemble):
    model, predictions = ensemble
    cloned = keras.models.clone_model(model)
    assert len(cloned.members) == 2
    cloned.set_weights(model.get_weights())
    assert_same_predictions(cloned, model, predictions)


def test_clone_fits_the_units_of_its_own_targets():
    cloned = keras.models.clone_model(fitted())
    cloned.compile(keras.optimizers.Adam(0.02), run_eagerly=True)
    cloned.fit(X, 5.0 * Y, verbose=0)
    np.testing.assert_allclose(cloned.likelihood.target_shift, 5 * Y.mean(), rtol=1e-5)


def test_clone_of_a_plain_network_keeps_kl_weight():
    network = keras.Sequential(
        [keras.Input((3,)), tfbbb.layers.DenseVariational(1, kl_weight=1 / 45)]
    )
    cloned = keras.models.clone_model(network)
    cloned.compile("sgd", "mse", run_eagerly=True)
    cloned.fit(X, Y, verbose=0)
    np.testing.assert_allclose(cloned.layers[0].kl_weight, 1 / 45, rtol=1e-6)


def test_clone_function_may_change_layers():
    def wider(layer):
        config = layer.get_config()
        if config.get("units") == 4:
            config["units"] = 6
        return type(layer).from_config(config)

    cloned = keras.models.clone_model(
        bayesian(LIKELIHOODS["counts"]()), clone_function=wider
    )
    assert cloned.layers[1].units == 6
    assert type(cloned.likelihood) is tfbbb.likelihoods.Poisson


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_predict_alike(copied, ensemble):
    model, predictions = ensemble
    assert_same_predictions(copied(model), model, predictions)


def test_deep_copy_trains_on_without_its_model():
    model = fitted()
    before = model.get_weights()
    copied = copy.deepcopy(model)
    copied.fit(X, Y, verbose=0)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    assert not np.array_equal(copied.layers[1].kernel.mean, model.layers[1].kernel.mean)


@pytest.mark.slow
def test_copies_keep_the_recalibration():
    model = fitted()
    tfbbb.recalibrate(model, X, Y)
    assert_same_predictions(copy.deepcopy(model), model)
    assert_same_predictions(pickle.loads(pickle.dumps(model)), model)


@pytest.mark.parametrize(
    "copied",
    [
        lambda model: type(model).from_config(model.get_config()),
        lambda model: keras.models.model_from_json(model.to_json()),
    ],
    ids=["config", "JSON"],
)
def test_model_of_its_config_is_the_same_model(copied):
    model = fitted(likelihood=LIKELIHOODS["given scale"](), members=3)
    copied = copied(model)
    copied.set_weights(model.get_weights())
    assert_same_predictions(copied, model)


def test_layer_of_its_config_computes_the_same():
    layer = tfbbb.layers.DenseVariational(
        2,
        prior="laplace",
        posterior="low_rank_normal",
        kl_weight=0.1,
        kernel_regularizer="l2",
    )
    layer.build((None, 3))
    copied = type(layer).from_config(layer.get_config())
    copied.build((None, 3))
    copied.set_weights(layer.get_weights())
    for ours, theirs in zip(
        copied.variational_weights, layer.variational_weights, strict=True
    ):
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        np.testing.assert_array_equal(ours.variance, theirs.variance)
        assert type(ours.prior) is type(theirs.prior)


def test_scikit_learn_wrapper_of_a_classifier():
    model = bayesian(LIKELIHOODS["classes"](), 3)
    model.compile(keras.optimizers.Adam(0.3), run_eagerly=True)
    options = {"epochs": 8, "batch_size": 45, "verbose": 0}
    wrapped = keras.wrappers.SKLearnClassifier(model, fit_kwargs=options)
    wrapped.fit(X, CLASSES)
    assert type(wrapped.model_.likelihood) is tfbbb.likelihoods.Categorical
    assert wrapped.score(X, CLASSES) > 0.6  # by chance 1/3, +- 0.07


@pytest.mark.slow
def test_scikit_learn_wrapper_of_a_regression_is_cross_validated():
    model = bayesian(LIKELIHOODS["given scale"]())
    model.compile(keras.optimizers.Adam(0.2), run_eagerly=True)
    options = {"epochs": 12, "batch_size": 45, "verbose": 0}
    wrapped = keras.wrappers.SKLearnRegressor(lambda X, y: copy.deepcopy(model))
    scores = cross_val_score(wrapped, X, Y[:, 0], cv=2, params=options)
    assert scores.min() > 0.5


def test_build_function_is_tried_with_several_settings():
    def build(units, scale):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((3,))
        hidden = tfbbb.layers.DenseVariational(units, "tanh")(inputs)
        outputs = tfbbb.layers.DenseVariational(1)(hidden)
        likelihood = tfbbb.likelihoods.Normal(scale=scale)
        model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
        model.compile(keras.optimizers.Adam(0.05), run_eagerly=True)
        return model

    trials = [(2, 0.01), (2, 10.0), (2, 0.01)]
    figures = [
        build(*trial).fit(X[:30], Y[:30], validation_data=(X[30:], Y[30:]), verbose=0)
        for trial in trials
    ]
    nll = [history.history["val_nll"][0] for history in figures]
    assert nll[0] == nll[2]
    assert nll[0] > 10 * nll[1]


def test_networks_of_two_models_may_share_a_layer():
    shared = tfbbb.layers.DenseVariational(4, "tanh")
    inputs = keras.Input((3,))
    models = [
        tfbbb.BayesianModel(
            inputs,
            tfbbb.layers.DenseVariational(1)(shared(inputs)),
            likelihood=squared_error(),
        )
        for _ in range(2)
    ]
    for model, rows in zip(models, (45, 20), strict=True):
        model.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
        history = model.fit(X[:rows], Y[:rows] / 100, verbose=0).history
        expected = np.add(history["nll"], np.divide(history["kl"], rows))
        np.testing.assert_allclose(history["loss"], expected, rtol=1e-5)
