"""The layer of Keras that a variational layer generalises, and its design matrix."""

import inspect

import keras
import numpy as np

from tfbbb.base.private_apis import sublayers
from tfbbb.layers import VariationalLayer


def weights_of(layer):
    """Returns the variational weights of a layer and of those in it."""
    return [
        weight
        for each in sublayers(layer)
        if isinstance(each, VariationalLayer)
        for weight in each.variational_weights
    ]


def keras_twin(layer, x):
    """Returns Keras' layer of the same arguments, built for `x`, with weights 0."""
    kind = getattr(keras.layers, type(layer).__name__.removesuffix("Variational"))
    known = inspect.signature(kind).parameters
    arguments = {k: v for k, v in layer.get_config().items() if k in known}
    twin = kind(**arguments)
    twin.build(x.shape)
    twin.set_weights([np.zeros(weight.shape) for weight in twin.weights])
    return twin


def with_weights(twin, x, flat):
    """Returns what a Keras layer computes with the weights of one vector."""
    sizes = np.cumsum([np.prod(weight.shape) for weight in twin.weights])
    parts = np.split(flat, sizes[:-1])
    twin.set_weights(
        [p.reshape(w.shape) for p, w in zip(parts, twin.weights, strict=True)]
    )
    return np.asarray(twin(x))


def design_matrix(layer, x):
    """Returns A [rows, outputs, weights] of `output = A @ weights`, row by row."""
    twin = keras_twin(layer, x)
    columns = [with_weights(twin, x, w) for w in np.eye(twin.count_params())]
    return np.stack([c.reshape(len(x), -1) for c in columns], axis=-1)


def flat_posterior(layer):
    """Returns means and standard deviations of all weights, each as one vector."""
    weights = weights_of(layer)
    means = [np.ravel(weight.mean) for weight in weights]
    stddevs = [np.ravel(weight.stddev) for weight in weights]
    return np.concatenate(means), np.concatenate(stddevs)


def set_known_posterior(layer, seed=1):
    """Gives every weight of a layer another mean and another standard deviation."""
    generator = np.random.default_rng(seed)
    for weight in weights_of(layer):
        shape = weight.variables["mean"].shape
        weight.variables["mean"].assign(generator.normal(size=shape))
        scales = generator.uniform(0.2, 0.6, size=shape)
        weight.variables["log_scale"].assign(np.log(scales))
