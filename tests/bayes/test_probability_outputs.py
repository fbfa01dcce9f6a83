"""A softmax or sigmoid at the end of a network is noticed."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import tfbbb
from tfbbb.layers import DenseVariational

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(20, 3)).astype("float32")
Y = X.argmax(axis=1)
NUMBERS = tfbbb.likelihoods.Normal(scale=1.0)


def sequential(*parts):
    return keras.Sequential([keras.Input((3,)), *parts])


def nested_twice():
    inputs = keras.Input((4,))
    outputs = layers.Softmax(name="inner")(inputs)
    inner = keras.Model(inputs, keras.Model(inputs, outputs)(inputs))
    return keras.Sequential([keras.Input((4,)), inner])


def nested_functional():
    inputs = keras.Input((4,))
    # The second output.
    return keras.Model(inputs, [inputs, layers.Softmax(name="second")(inputs)])


PROBABILITIES = {
    "softmax in 'own'": lambda t: DenseVariational(4, "softmax", name="own")(t),
    "softmax in 'of_tf'": lambda t: DenseVariational(4, tf.nn.softmax, name="of_tf")(t),
    "softmax in 'last'": lambda t: layers.Activation("softmax", name="last")(t),
    "softmax in 'layer'": lambda t: layers.Softmax(name="layer")(t),
    "softmax in 'softmax": ops.softmax,
    "sigmoid in 's'": lambda t: layers.Reshape((2, 2))(
        layers.Activation("sigmoid", name="s")(t)
    ),
    "sigmoid in 'sigmoid": ops.sigmoid,
    "softmax in 'inner'": lambda t: nested_twice()(t),
    "softmax in 'second'": lambda t: nested_functional()(t)[1],
    "softmax in 'steps'": lambda t: layers.TimeDistributed(
        layers.Dense(4, "softmax"), name="steps"
    )(layers.Reshape((4, 1))(t)),
}


@pytest.mark.parametrize("received", PROBABILITIES)
def test_probabilities_are_noticed_when_the_model_is_made(received):
    inputs = keras.Input((3,))
    outputs = PROBABILITIES[received](DenseVariational(4)(inputs))
    message = rf"takes logits.*linear outputs\. Received: a {received}"
    with pytest.raises(ValueError, match=message):
        tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")


def test_a_sigmoid_before_a_bernoulli_is_noticed():
    inputs = keras.Input((3,))
    outputs = ops.sigmoid(DenseVariational(1)(inputs))
    with pytest.raises(ValueError, match="takes logits"):
        tfbbb.BayesianModel(inputs, outputs, likelihood="bernoulli")


@pytest.mark.parametrize(
    "ending",
    [
        lambda t: t,
        ops.relu,
        ops.log_softmax,
        lambda t: 5.0 * ops.tanh(t / 5.0),
        lambda t: 0.01 * ops.relu(t),
        layers.Lambda(lambda t: t / 2.0),
        layers.LayerNormalization(),
        lambda t: DenseVariational(4)(ops.softmax(t)),
    ],
    ids=["none", "relu", "log", "tanh", "scaled", "Lambda", "normalised", "before"],
)
def test_logits_are_taken_whatever_computes_them(ending):
    inputs = keras.Input((3,))
    outputs = ending(DenseVariational(4)(inputs))
    tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")


def test_numbers_may_be_between_0_and_1():
    inputs = keras.Input((3,))
    outputs = DenseVariational(1, activation="sigmoid")(inputs)
    tfbbb.BayesianModel(inputs, outputs, likelihood="normal")


class Head(layers.Layer):
    """A layer with weights whose code ends in a softmax."""

    def __init__(self):
        super().__init__()
        self.dense = DenseVariational(4)

    def call(self, inputs):
        return ops.reshape(ops.softmax(self.dense(inputs)), (-1, 4))


@pytest.mark.usefixtures("compiled_functions")
def test_a_softmax_within_a_layer_is_noticed_before_the_first_step():
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(inputs, Head()(inputs), likelihood="categorical")
    model.compile("adam")
    with pytest.raises(ValueError, match="Received: a softmax at the end"):
        model.fit(X, Y, verbose=0)
    assert model.num_rows is None


@pytest.mark.usefixtures("compiled_functions")
@pytest.mark.parametrize(
    ("ending", "run_eagerly"),
    [(layers.Softmax, True), (lambda: layers.Lambda(tf.nn.softmax), False)],
    ids=["eager", "traced"],
)
def test_the_loss_of_a_plain_network_notices_a_softmax(ending, run_eagerly):
    network = sequential(DenseVariational(4, kl_weight=0.1), ending())
    loss = tfbbb.losses.NegativeLogLikelihood("categorical")
    network.compile("adam", loss, run_eagerly=run_eagerly)
    with pytest.raises(ValueError, match="takes logits"):
        network.fit(X, Y, verbose=0)


def test_predictive_of_a_plain_network_notices_a_softmax():
    network = sequential(DenseVariational(4, kl_weight=0.1), layers.Softmax())
    with pytest.raises(ValueError, match="takes logits"):
        tfbbb.predictive(network, X, likelihood="categorical")
    probabilities = tfbbb.predictive(network, X, likelihood=NUMBERS)
    assert probabilities.mean.shape == (20, 4)
