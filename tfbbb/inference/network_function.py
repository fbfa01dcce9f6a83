"""A Bayesian model as a function of its weights: what inference methods work on."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfbbb.base import types
from tfbbb.base.private_apis import sublayers
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.place_weights import split_weights
from tfbbb.prediction.network_pass import NetworkPass
from tfbbb.prediction.output_mask import OutputMask
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import Structure


class NetworkFunction:
    """The outputs, likelihood and prior of a model for given values of its weights.

    A *weight vector* [..., D] holds the values of all weights, tensor by tensor in the
    order of `weights`. Every method takes the values of K weight vectors at once, as
    the list of tensors [K, *shape] that `split` returns, and is differentiable in them
    and traceable by `tf.function`. No posterior is used, and dropout is off.
    """

    def __init__(self, model: BayesianModel):
        self.model = model
        self.weights: list[VariationalWeight] = model.variational_weights
        if not self.weights:
            raise ValueError(
                "The model has no weights with a posterior; use layers of "
                "`tfbbb.layers`, or `tfbbb.convert`. "
                f"Received: layers {[layer.name for layer in model.layers]}"
            )
        self.sizes = [weight.size for weight in self.weights]
        self.size = sum(self.sizes)
        self._structure = Structure.of(model)
        self._likelihood = _with_learned_outputs(model)
        self._output_mask = OutputMask(model)

    def split(self, vectors: ArrayLike) -> list[tf.Tensor]:
        """Returns weight vectors [K, D] as one tensor [K, *shape] per weight tensor."""
        vectors = tf.convert_to_tensor(vectors)
        parts = tf.split(vectors, self.sizes, axis=-1)
        return [
            tf.reshape(part, [-1, *weight.shape])
            for part, weight in zip(parts, self.weights, strict=True)
        ]

    def join(self, values: Sequence[Tensor]) -> tf.Tensor:
        """Returns tensors [K, *shape] as weight vectors [K, D]."""
        flat = [
            tf.reshape(value, [-1, size])
            for value, size in zip(values, self.sizes, strict=True)
        ]
        return tf.concat(flat, axis=-1)

    def means(self) -> np.ndarray:
        """Returns the posterior means as weight vectors, [members, D] or [1, D]."""
        return self.join([weight.mean for weight in self.weights]).numpy()

    def outputs(self, values: Sequence[Tensor], x: types.Structure) -> tf.Tensor:
        """Returns f(x, w) of rows for tensors of `split`, [K, rows, ..., P]."""
        given = dict(zip(map(id, self.weights), values, strict=True))
        draws: dict[str, dict[str, Tensor]] = {
            info.key: {
                weight.name: tf.cast(given[id(weight)], info.layer.compute_dtype)
                for weight in info.layer.variational_weights
            }
            for info in self._structure.layer_infos
        }
        count = tf.shape(values[0])[0]
        network_pass = NetworkPass(
            self.model, self._structure, Plan(), {}, draws, count, uses_channels=False
        )
        (outputs,), _ = network_pass.run(x)
        return outputs

    def log_likelihood(
        self,
        values: Sequence[Tensor],
        x: types.Structure,
        y: ArrayLike,
        learned: Sequence[Tensor] | None = None,
    ) -> tf.Tensor:
        """Returns log p(y_i | f(x_i, w)) of each row for each weight vector, [K, rows].

        Masked steps do not count. `learned` are the likelihood's parameters, [K, size]
        or [1, size] each; by default those of the model, the k-th member's for the k-th
        vector.
        """
        outputs = self.outputs(values, x)
        likelihood = self.model.likelihood
        if likelihood.members > 1 and learned is None:
            learned = [tf.convert_to_tensor(v) for v in likelihood.learned_variables]
        if learned:
            likelihood = self._likelihood
            outputs = _with_columns(outputs, learned)
        targets = likelihood.aligned(y, outputs[0])
        mask = self._output_mask(x)
        if mask is not None:
            _, of_places = split_weights(None, mask, len(outputs.shape) - 3)
            targets = likelihood.with_placeholders(targets, of_places != 0)
        log_prob = likelihood.log_prob(targets, outputs)
        if mask is not None:
            log_prob *= tf.cast(of_places, log_prob.dtype)
        axes = list(range(2, len(log_prob.shape)))
        return tf.reduce_sum(log_prob, axis=axes) if axes else log_prob

    def log_prior(self, values: Sequence[Tensor]) -> tf.Tensor:
        """Returns log p(w) of each weight vector, [K], in nats."""
        total = 0.0
        for weight, value in zip(self.weights, values, strict=True):
            total += tf.reshape(weight.prior_log_prob(value), [-1])
        return total


def _with_learned_outputs(model: BayesianModel) -> Likelihood:
    """Returns the likelihood, or a copy that takes learned parameters with outputs."""
    likelihood = model.likelihood
    if likelihood.members > 1 or not likelihood.learned_variables:
        return likelihood
    # Any number of members above one makes a likelihood take them so.
    copy = type(likelihood).from_config({**likelihood.get_config(), "members": 2})
    copy.build(model.outputs[0].shape)
    for source, target in zip(sublayers(likelihood), sublayers(copy), strict=True):
        for old, variable in zip(source.variables, target.variables, strict=True):
            variable.assign(np.broadcast_to(old.numpy(), variable.shape))
    return copy


def _with_columns(outputs: tf.Tensor, columns: Sequence[Tensor]) -> tf.Tensor:
    """Appends values [K, size] to every place of outputs [K, rows, ..., P]."""
    places = tf.shape(outputs)[:-1]
    ones = [1] * (len(outputs.shape) - 2)
    spread = []
    for column in columns:
        column = tf.cast(column, outputs.dtype)
        size = column.shape[-1]
        shaped = tf.reshape(column, [-1, *ones, size])
        spread.append(tf.broadcast_to(shaped, tf.concat([places, [size]], 0)))
    return tf.concat([outputs, *spread], axis=-1)
