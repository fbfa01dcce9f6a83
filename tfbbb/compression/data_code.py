"""How many bits targets take, given inputs and weights."""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb import likelihoods
from tfbbb.prediction.method import resolve_method
from tfbbb.prediction.sampler import Sampler


class DataCode:
    """Computes `E_q sum_i -log p(y_i | x_i, w)` in bits, as often as q changes.

    Args:
        model: A built Keras model with one output tensor.
        x: Inputs of the rows.
        y: Targets of the rows, in raw units.
        likelihood: p(y | f), or None for the model's own.
        num_samples: Number of draws from q, two at the least.
        seed: Seed of the draws.
    """

    def __init__(
        self,
        model: keras.Model,
        x: Any,
        y: Any,
        likelihood: Any,
        num_samples: int,
        seed: int,
    ):
        if num_samples < 2:
            raise ValueError(
                "It takes two samples at the least to know the error of the expected "
                f"code length. Received: num_samples={num_samples}"
            )
        inputs = _as_tensors(model, x)
        num_rows = len(tree.flatten(inputs)[0])
        method = resolve_method(model, "auto", num_rows)
        sampler = Sampler(model, method, inputs)
        likelihood = _likelihood_of(model, likelihood)
        if not likelihood.built:
            likelihood.build((None, *sampler.event_shape))
        targets = tf.convert_to_tensor(likelihood.check_targets(y))
        if len(targets) != num_rows:
            raise ValueError(
                "There must be one row of targets for each row of inputs. "
                f"Received: {num_rows} rows of x, {len(targets)} of y"
            )
        spec = tf.TensorSpec([None, num_samples], tf.float64)

        def nats(outputs: Any, first: Any) -> tf.Tensor:
            part = targets[first : first + tf.shape(outputs)[0]]
            outputs = tf.cast(outputs, tf.float64)
            log_prob = likelihood.log_prob(part[:, tf.newaxis], outputs)
            # A row may have several places, each with its targets.
            per_row = [tf.shape(outputs)[0], num_samples, -1]
            return -tf.reduce_sum(tf.reshape(log_prob, per_row), axis=-1)

        @tf.function(autograph=False)
        def per_draw() -> tf.Tensor:
            draws = (tf.constant(num_samples), tf.constant((0, seed), tf.int32))
            per_row = sampler.map_rows(nats, inputs, *draws, spec)
            return tf.reduce_sum(per_row, axis=0)

        self._per_draw = per_draw

    def bits(self) -> tuple[float, float]:
        """Returns the expected number of bits of all rows, and its standard error."""
        bits = np.asarray(self._per_draw()) / math.log(2)
        return float(bits.mean()), float(bits.std(ddof=1) / math.sqrt(len(bits)))


def _as_tensors(model: keras.Model, x: Any) -> Any:
    if isinstance(x, dict):
        return {name: _as_tensor(values) for name, values in x.items()}
    if isinstance(x, list | tuple) and len(getattr(model, "inputs", [x])) > 1:
        return [_as_tensor(values) for values in x]
    return _as_tensor(x)


def _as_tensor(values: Any) -> tf.Tensor:
    tensor = tf.convert_to_tensor(np.asarray(values))
    return (
        tf.cast(tensor, keras.config.floatx()) if tensor.dtype.is_floating else tensor
    )


def _likelihood_of(model: keras.Model, given: Any) -> likelihoods.Likelihood:
    chosen = getattr(model, "likelihood", None) if given is None else given
    if chosen is None:
        raise ValueError(
            "A plain Keras model does not know its likelihood p(y | f). Pass "
            "`likelihood=`, e.g. `tfbbb.likelihoods.Categorical()`. "
            "Received: likelihood=None"
        )
    likelihood: likelihoods.Likelihood = likelihoods.get(chosen)
    return likelihood
