"""A `BayesianModel` of point posteriors and its twin in plain Keras."""

import functools
import math
from types import SimpleNamespace

import keras
import numpy as np

import tfbbb

POINT = {
    "posterior": "point",
    "prior": None,
    "bias_posterior": "point",
    "bias_prior": None,
}
# The negative log likelihood of such a normal is the squared error, plus this number.
HALF = 0.5**0.5
CONSTANT = 0.5 * math.log(math.pi)

# The layers of Keras, and in the place of those with weights ours with a point.
POINTS = SimpleNamespace(
    **vars(keras.layers)
    | {
        name.removesuffix("Variational"): functools.partial(
            getattr(tfbbb.layers, name), **POINT
        )
        for name in tfbbb.layers.__all__
        if name.endswith("Variational")
    }
)
LOSSES = {
    "normal": (None, "mse"),
    "bernoulli": ("sigmoid", "binary_crossentropy"),
    "categorical": ("softmax", "sparse_categorical_crossentropy"),
    "one-hot": ("softmax", "categorical_crossentropy"),
}


def regression(layers):
    """Returns inputs and outputs of a network of one hidden layer."""
    inputs = keras.Input((3,))
    return inputs, layers.Dense(1)(layers.Dense(4, "tanh")(inputs))


def squared_error():
    """Returns the likelihood whose negative logarithm is the squared error."""
    return tfbbb.likelihoods.Normal(scale=HALF, standardize=False)


def twins(network, kind="normal", rate=0.1, members=None, **options):
    """Returns a `BayesianModel` and a Keras model that start with the same weights."""
    likelihood = {"normal": squared_error(), "one-hot": "categorical"}.get(kind, kind)
    model = tfbbb.BayesianModel(
        *network(POINTS), likelihood=likelihood, members=members
    )
    inputs, outputs = network(keras.layers)
    activation, loss = LOSSES[kind]
    twin = keras.Model(inputs, keras.layers.Activation(activation)(outputs))
    copy_weights(twin, model)
    for each, arguments in ((model, {}), (twin, {"loss": loss})):
        own = {
            name: value() if callable(value) else value
            for name, value in options.items()
        }
        own = {"run_eagerly": True, "optimizer": keras.optimizers.SGD(rate)} | own
        each.compile(**own, **arguments)
    return model, twin


def copy_weights(source, target):
    """Gives the trainable weights of a model to its twin, for each of its members."""
    pairs = zip(source.trainable_variables, target.trainable_variables, strict=True)
    for from_, to in pairs:
        to.assign(np.broadcast_to(from_.numpy(), to.shape))


def assert_same_weights(model, twin, rtol=1e-4, atol=1e-5):
    """Asserts that two models have the same trainable weights."""
    pairs = zip(model.trainable_variables, twin.trainable_variables, strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
