"""What a model keeps between predictions is bounded, and never stale."""

import gc
import threading
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational
from tfbbb.prediction import program

X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
Y = X[:, :1] ** 2


def network(seed=0):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((3,))
    hidden = keras.layers.BatchNormalization()(DenseVariational(6, "tanh")(inputs))
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(hidden))
    model.compile("adam")
    model.likelihood.adapt(Y)
    return model


@pytest.fixture
def model():
    return network()


@pytest.fixture(scope="module")
def changing():
    """A model whose compiled functions outlive the changes of its weights."""
    return network()


def assigned(model):
    variable = model.variational_layers[0].kernel.variables["mean"]
    variable.assign(1.0 - variable)


def added_within_a_function(model):
    variable = model.variational_layers[1].kernel.variables["log_scale"].value
    tf.function(lambda: variable.assign_add(tf.ones_like(variable)))()


def likelihood_of_other_targets(model):
    for variable in model.likelihood.variables:
        variable.assign(variable + 1.0)


@pytest.mark.parametrize(
    ("change", "method"),
    [
        (assigned, "local"),
        (added_within_a_function, "weight"),
        (likelihood_of_other_targets, "weight"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_answers_are_those_of_the_present_weights(changing, change, method):
    model = changing
    before = model.predictive(X, 20, method).variance
    change(model)
    found = model.predictive(X, 20, method)
    fresh = network()
    fresh.set_weights(model.get_weights())
    expected = fresh.predictive(X, 20, method)
    assert not np.any(found.variance == before)
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.variance, expected.variance)
    np.testing.assert_array_equal(found.quantile(0.3), expected.quantile(0.3))


def alive(references):
    gc.collect()
    return [reference() is not None for reference in references]


@pytest.fixture
def passes(monkeypatch):
    """Weak references to all that keeps draws, as it is made."""
    found = []

    class Watched(program.Passes):
        def __init__(self, **functions):
            super().__init__(**functions)
            found.append(weakref.ref(self))

    monkeypatch.setattr(program, "Passes", Watched)
    return found


def test_draws_serve_several_kinds_of_predictions_until_the_weights_change(
    model, passes
):
    for method in ("local", "weight", "local", "weight"):
        model.predictive(X, 20, method)
    assert len(passes) == 2
    assigned(model)
    model.predictive(X, 20, "local")
    assert alive(passes)[-1]
    assert sum(alive(passes)) == 1


def test_number_of_kinds_of_predictions_is_bounded(model, monkeypatch, passes):
    monkeypatch.setattr("tfbbb.prediction.structure._MOST_PROGRAMS", 2)
    inputs = keras.Input((3,))
    plain = keras.Model(inputs, DenseVariational(1)(inputs))
    answers = []
    for scale in (0.1, 0.2, 0.3, 0.1):
        likelihood = Normal(scale=scale)
        prediction = tfbbb.predictive(plain, X, likelihood=likelihood, num_samples=10)
        answers.append(prediction.aleatoric)
    np.testing.assert_allclose(
        [variance[0, 0] for variance in answers],
        np.square([0.1, 0.2, 0.3, 0.1]),
        rtol=1e-6,
    )
    del prediction
    assert sum(alive(passes)) <= 2


def test_threads_get_the_draws_of_their_own_seeds(model):
    expected = {seed: model.predictive(X, 40, seed=seed).mean for seed in range(4)}
    fresh, wrong = network(), []

    def predict(seed):
        for _ in range(3):
            # Of the first call, that compiles, too.
            for each in (fresh, model):
                if np.any(each.predictive(X, 40, seed=seed).mean != expected[seed]):
                    wrong.append(seed)

    failures = run_together([lambda seed=seed: predict(seed) for seed in expected])
    assert not wrong
    assert not failures


def test_threads_may_predict_while_the_model_is_trained(model):
    def predict():
        for _ in range(10):
            assert np.all(np.isfinite(model.predictive(X, 20).variance))

    failures = run_together([predict, lambda: model.fit(X, Y, epochs=10, verbose=0)])
    assert not failures
    fresh = network()
    fresh.set_weights(model.get_weights())
    np.testing.assert_array_equal(
        model.predictive(X, 20).mean, fresh.predictive(X, 20).mean
    )


def run_together(functions):
    """Returns the exceptions of functions that run in threads of their own."""
    failures = []

    def guarded(function):
        try:
            function()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures
