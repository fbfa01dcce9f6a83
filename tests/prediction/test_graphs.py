"""Whatever the model is made of, the engines draw what its ordinary calls draw."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.posterior_draws import assert_same_moments, brute_force_draws, engine_draws
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational

METHODS = ("local", "weight")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(3, 4)).astype("float32")
SEQUENCES = GENERATOR.normal(size=(3, 5, 4)).astype("float32")


def variational(units, activation=None, **kwargs):
    return DenseVariational(
        units,
        activation,
        posterior=MeanFieldNormal(initial_scale=1.0),
        bias_posterior=MeanFieldNormal(initial_scale=0.5),
        bias_initializer="ones",
        estimator="weight",
        **kwargs,
    )


class Residual(keras.Model):
    """A subclassed model: y = b(a(x) + x)."""

    def __init__(self):
        super().__init__()
        self.hidden = variational(4, "tanh")
        self.head = variational(2)

    def call(self, inputs):
        return self.head(self.hidden(inputs) + inputs)


class Even(keras.layers.Layer):
    """Calls one layer twice: y = f(x) + f(-x)."""

    def __init__(self):
        super().__init__()
        self.function = variational(2)

    def build(self, input_shape):
        self.function.build(input_shape)

    def call(self, inputs):
        return self.function(inputs) + self.function(-inputs)


def sequential():
    return keras.Sequential([keras.Input((4,)), variational(5, "relu"), variational(2)])


def subclassed():
    return Residual()


def shared_layer():
    inputs = keras.Input((4,))
    shared = variational(2)
    return keras.Model(inputs, keras.layers.Add()([shared(inputs), shared(-inputs)]))


def shared_nested_model():
    inputs, shared = keras.Input((4,)), sequential()
    return keras.Model(inputs, keras.ops.tanh(shared(inputs)) + shared(2.0 * inputs))


def nested_model_of_a_folded_and_an_unfolded_input():
    first, second = keras.Input((4,)), keras.Input((4,))
    nested = keras.Model([first, second], variational(2)(first * second))
    inputs = keras.Input((4,))
    return keras.Model(inputs, nested(inputs=[inputs, variational(4)(inputs)]))


def layer_that_calls_another_twice():
    inputs = keras.Input((4,))
    return keras.Model(inputs, Even()(inputs))


def inference_of_dropout_and_normalization():
    inputs = keras.Input((4,))
    hidden = keras.layers.BatchNormalization()(variational(4)(inputs))
    hidden = keras.layers.Dropout(0.9)(keras.layers.LayerNormalization()(hidden))
    model = keras.Model(inputs, variational(2)(hidden))
    model.layers[2].moving_mean.assign([1.0, -1.0, 2.0, 0.0])
    model.layers[2].moving_variance.assign([1.0, 4.0, 9.0, 0.5])
    return model


def constants():
    inputs = keras.Input((4,))
    row = tf.constant([[1.0, -2.0, 3.0]])
    hidden = variational(3)(keras.ops.maximum(inputs, tf.constant(0.1)))
    return keras.Model(inputs, variational(2)(keras.ops.multiply(row, hidden) + row))


def time_distributed():
    inputs = keras.Input((5, 4))
    hidden = keras.layers.TimeDistributed(variational(2))(inputs)
    return keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(hidden))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("build", "x"),
    [
        (subclassed, X),
        (shared_layer, X),
        (shared_nested_model, X),
        (nested_model_of_a_folded_and_an_unfolded_input, X),
        (layer_that_calls_another_twice, X),
        (inference_of_dropout_and_normalization, X),
        (constants, X),
        (time_distributed, SEQUENCES),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_engines_draw_what_ordinary_calls_draw(build, x):
    keras.utils.set_random_seed(0)
    model = build()
    loop = brute_force_draws(model, x, 400)
    for method in METHODS:
        assert_same_moments(engine_draws(model, x, method, 1000), loop)


@pytest.mark.parametrize("method", METHODS)
def test_shared_layer_is_one_function_in_every_draw(method):
    inputs, shared = keras.Input((4,)), variational(2)
    model = keras.Model(inputs, shared(inputs) - shared(inputs))
    assert not np.any(engine_draws(model, X, method, 50))


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float64"])
def test_answer_is_as_precise_as_the_layers_at_most(policy):
    # bfloat16 keeps eight bits: a part in 256, of each of some ten terms.
    keras.utils.set_random_seed(0)
    models = []
    for dtype in (policy, "float32"):
        inputs = keras.Input((4,))
        hidden = variational(5, "tanh", dtype=dtype)(inputs)
        models.append(keras.Model(inputs, variational(2, dtype=dtype)(hidden)))
    models[1].set_weights(models[0].get_weights())
    likelihood = Normal(heteroscedastic=True)
    for method in METHODS:
        low, single = (
            tfbbb.predictive(
                model, X, likelihood=likelihood, num_samples=50, method=method
            )
            for model in models
        )
        np.testing.assert_allclose(low.mean, single.mean, atol=0.05)
        np.testing.assert_allclose(low.variance, single.variance, rtol=0.1)
        quantiles = low.quantile([0.1, 0.9])
        np.testing.assert_allclose(quantiles, single.quantile([0.1, 0.9]), atol=0.1)
        assert np.all(np.isfinite(low.log_prob(X[:, :1])))
        assert low.sample(3).shape == (3, 3, 1)


def test_first_prediction_builds_the_model():
    model = Residual()
    prediction = tfbbb.predictive(model, X, likelihood=Normal(scale=1.0))
    assert prediction.mean.shape == (3, 2)
    unbuilt = keras.Sequential([variational(3), variational(2)])
    prediction = tfbbb.predictive(unbuilt, X, likelihood=Normal(scale=1.0))
    assert prediction.mean.shape == (3, 2)
