"""Rows of a network: its weights as a vector, and the local optimum by gradients."""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.bayes.priors import FromPosterior, Normal
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.lab.inference.natural_normal import NaturalNormal
from tfbbb.layers import VariationalLayer
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.optimizers import Adam
from tfbbb.model.training_rows import TrainingRows

# The factor of a learned parameter of the likelihood has this precision for each row.
_PRECISION_OF_A_ROW = 1.0
# Precision of the prior of such a parameter.
_PRIOR_PRECISION = 1e-3


class NetworkWeights:
    """The weights of a network under q and under the prior, as vectors of D numbers.

    Every posterior is a `mean_field_normal`. The prior of every weight becomes a normal
    with a mean and a variance of its own, so that it can be a cavity.

    Learned parameters of the likelihood, such as the noise, have no posterior. They
    stand at the end of the vectors as points: in the place of a likelihood factor they
    have one with a fixed precision, 1 for each row, so that each partition finds

        argmin_a  E_q[-log p(y | w, a)] + c (a - mean)^2 / 2

    with the precision c and the mean of the cavity. Whatever the fixed precision is, a
    stays where the gradients of all partitions add up to 0.

    Args:
        model: A model with one member, `mean_field_normal` posteriors and normal
            priors.

    Attributes:
        model: A copy of the model whose priors can be set.
        prior: The prior of the given model.
        start: The posterior of the given model, from which training starts. A new
            network has means that break its symmetry, and small variances, without
            which a posterior of few rows would prune most units.

    Raises:
        ValueError: The model has another posterior or prior, several members, trainable
            weights without a posterior, batch normalisation, or a `kl_weight` of its
            own.
    """

    def __init__(self, model: BayesianModel):
        _check(model)
        self._given = model
        held = FromPosterior(model)
        self.model = copied_model(model, prior=held, bias_prior=held)
        moments = [_prior_moments(weight) for weight in model.variational_weights]
        learned = self.learned_parameters
        weak = np.full_like(learned, 1.0 / _PRIOR_PRECISION)
        self.prior = NaturalNormal.from_moments(
            np.concatenate([*(mean for mean, _ in moments), learned]),
            np.concatenate([*(variance for _, variance in moments), weak]),
        )
        mean, variance = self.moments
        variance[len(variance) - len(learned) :] = weak
        self.start = NaturalNormal.from_moments(mean, variance)

    @property
    def learned_parameters(self) -> np.ndarray:
        """The learned parameters of the likelihood, [number]."""
        found = self.model.likelihood.learned_variables
        values = [np.asarray(variable, np.float64).ravel() for variable in found]
        return np.concatenate([*values, np.zeros(0)])

    @property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of q; the variance of a learned parameter is 0."""
        weights, learned = self.model.variational_weights, self.learned_parameters
        variables = [weight.variables for weight in weights]
        means = [np.asarray(each["mean"], np.float64).ravel() for each in variables]
        logs = [np.asarray(each["log_scale"], np.float64).ravel() for each in variables]
        return (
            np.concatenate([*means, learned]),
            np.concatenate([*(np.exp(2.0 * x) for x in logs), np.zeros_like(learned)]),
        )

    def set_q(
        self, mean: np.ndarray, variance: np.ndarray, model: BayesianModel | None = None
    ) -> None:
        """Sets the posteriors and the learned parameters.

        Args:
            mean: Means, [D].
            variance: Variances, [D]; those of learned parameters are not used.
            model: The model to set; by default `self.model`.
        """
        model = self.model if model is None else model
        first = _assign(
            [w.variables for w in model.variational_weights], mean, variance
        )
        for variable in model.likelihood.learned_variables:
            size = math.prod(variable.shape)
            variable.assign(mean[first : first + size].reshape(variable.shape))
            first += size

    def model_with(self, q: NaturalNormal) -> BayesianModel:
        """Returns the given model, with its own priors and the posterior q."""
        model = copied_model(self._given)
        self.set_q(*q.moments(), model)
        return model

    def set_prior(self, prior: NaturalNormal) -> None:
        """Sets the priors of the weights; learned parameters keep theirs."""
        named = [
            {name.rpartition(":")[2]: v for name, v in weight.prior_variables.items()}
            for weight in self.model.variational_weights
        ]
        _assign(named, *prior.moments())


class LocalTraining:
    """Trains q of a network on the rows of one partition and their cavity.

    Adam from a fresh state, at a learning rate that follows half a cosine to 0 in each
    update, on minibatches of one size; remaining rows wait for another epoch. All steps
    of an update are one TensorFlow function.

    Args:
        weights: The network, which the partitions of one process share.
        epochs: Passes over the rows in an update.
        batch_size: Rows of a step.
        learning_rate: The learning rate at the start of an update.
    """

    def __init__(
        self,
        weights: NetworkWeights,
        epochs: int,
        batch_size: int,
        learning_rate: float,
    ):
        self.weights = weights
        self._epochs = epochs
        self._batch_size = batch_size
        self._learning_rate = learning_rate
        model = weights.model
        model.compile(Adam(learning_rate))
        model.optimizer.build(model.trainable_variables)
        self._anchors = [_Anchor(v) for v in model.likelihood.learned_variables]
        self._run: Callable[..., None] | None = None

    def optimum(
        self,
        x: Structure,
        y: tf.Tensor,
        cavity: NaturalNormal,
        start: NaturalNormal,
        seed: tuple[int, int],
    ) -> NaturalNormal:
        """Returns q after training, as `LocalRows.optimum` describes.

        Args:
            x: Inputs, a structure of tensors [n, ...].
            y: Targets, [n, ...].
            cavity: The prior of the update.
            start: The q where training starts.
            seed: Seed of the order of the rows.
        """
        weights, number = self.weights, int(y.shape[0])
        weights.set_q(*start.moments())
        weights.set_prior(cavity)
        points = len(weights.learned_parameters)
        first = len(cavity.linear) - points
        centre = cavity.linear[first:] / cavity.precision[first:]
        place = 0
        for anchor in self._anchors:
            one = slice(place, place + anchor.size)
            precision = cavity.precision[first:][one]
            anchor.set(centre[one], precision / number)
            place = one.stop
        for variable in weights.model.optimizer.variables:
            variable.assign(tf.zeros_like(variable))
        batch_size = min(self._batch_size, number)
        with weights.model.training_on(TrainingRows(targets=None, size=number)):
            self._compiled(x, y)(x, y, tf.constant(batch_size), tf.constant(seed))
        mean, variance = weights.moments
        if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
            raise TrainingDivergedError(self._learning_rate)
        # A point gets the precision of its cavity and of the rows.
        rows = np.full(points, number * _PRECISION_OF_A_ROW)
        variance[first:] = 1.0 / (cavity.precision[first:] + rows)
        return NaturalNormal.from_moments(mean, variance)

    def _compiled(self, x: Structure, y: tf.Tensor) -> Callable[..., None]:
        """Returns the steps as one function for any number of rows."""
        if self._run is None:
            signature = tree.map_structure(
                lambda a: tf.TensorSpec([None, *a.shape[1:]], a.dtype), (x, y)
            )
            number, seed = tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.int32)
            self._run = tf.function(
                self._steps, input_signature=[*signature, number, seed]
            )
        return self._run

    def _steps(self, x: Structure, y: Tensor, batch_size: Tensor, seed: Tensor) -> None:
        model = self.weights.model
        steps = tf.shape(y)[0] // batch_size
        total = tf.cast(self._epochs * steps, tf.float32)
        taken = tf.constant(0.0)
        for epoch in tf.range(self._epochs):
            order = tf.random.experimental.stateless_shuffle(
                tf.range(tf.shape(y)[0]), seed + tf.stack([0, epoch])
            )
            for step in tf.range(steps):
                share = 0.5 * (1.0 + tf.cos(math.pi * taken / total))
                model.optimizer.learning_rate.assign(self._learning_rate * share)
                rows = order[step * batch_size : (step + 1) * batch_size]
                inputs = tree.map_structure(lambda a, rows=rows: tf.gather(a, rows), x)
                model.train_step((inputs, tf.gather(y, rows)))
                taken += 1.0


class NetworkRows:
    """The rows of a partition, and the training that its process has.

    Args:
        x: Inputs, [n, ...], in any structure that the model takes.
        y: Targets, [n, ...].
        training: The local training.
        seed: Seed of the order of the rows.
    """

    def __init__(self, x: Structure, y: ArrayLike, training: LocalTraining, seed: int):
        self._x = tree.map_structure(_tensor, x)
        self._y = _tensor(y)
        self._training = training
        self._seed = seed
        self.prior = training.weights.prior

    def optimum(
        self, cavity: NaturalNormal, start: NaturalNormal, seed: int
    ) -> NaturalNormal:
        seeds = (self._seed, seed * 10_000)
        return self._training.optimum(self._x, self._y, cavity, start, seeds)


class _Anchor(keras.regularizers.Regularizer):
    """`precision (a - mean)^2 / 2` of a learned parameter, for its mean row."""

    def __init__(self, variable: keras.Variable):
        self.size = math.prod(variable.shape)
        self._mean = keras.Variable(tf.zeros(variable.shape), trainable=False)
        self._precision = keras.Variable(tf.zeros(variable.shape), trainable=False)
        variable.regularizer = self

    def set(self, mean: np.ndarray, precision: np.ndarray) -> None:
        self._mean.assign(mean.reshape(self._mean.shape))
        self._precision.assign(precision.reshape(self._mean.shape))

    def __call__(self, value: Tensor) -> Tensor:
        distances = keras.ops.square(value - self._mean)
        return 0.5 * keras.ops.sum(self._precision * distances)


def _tensor(values: ArrayLike) -> tf.Tensor:
    """Returns an array as a tensor, floats in single precision as in `fit`."""
    array = np.asarray(values)
    return tf.constant(array.astype(np.float32) if array.dtype.kind == "f" else array)


def copied_model(model: BayesianModel, **options: Any) -> BayesianModel:
    """Returns a copy of the model with other options of its layers."""
    return with_posterior(
        model,
        MeanFieldNormal(),
        layer_options=lambda layer: {
            "posterior": layer.posterior,
            "bias_posterior": layer.bias_posterior,
            "estimator": layer.estimator,
        },
        **options,
    )


def _assign(
    normals: list[dict[str, keras.Variable]], mean: np.ndarray, variance: np.ndarray
) -> int:
    """Sets means and scales of normals in turn; returns how many numbers were set."""
    first = 0
    for variables in normals:
        shape = tuple(variables["mean"].shape)
        place = slice(first, first + math.prod(shape))
        variables["mean"].assign(mean[place].reshape(shape))
        variables["log_scale"].assign(0.5 * np.log(variance[place]).reshape(shape))
        first = place.stop
    return first


def _prior_moments(weight: VariationalWeight) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and variance of each weight under the prior, [size]."""
    prior = weight.prior
    if isinstance(prior, Normal) and not prior.trainable:
        scale = prior.scale_for(weight.fan_in)
        return np.zeros(weight.size), np.full(weight.size, scale**2)
    if isinstance(prior, FromPosterior):
        family, parameters = prior.posterior(prior.parameters(weight))
        if isinstance(family, MeanFieldNormal):
            mean = np.asarray(family.mean(parameters, weight.shape), np.float64)
            variance = family.variance(parameters, weight.shape)
            return mean.ravel(), np.asarray(variance, np.float64).ravel()
    raise ValueError(
        "PartitionedVI divides q by factors, which needs normal priors: "
        "`tfbbb.priors.Normal(trainable=False)`, or `FromPosterior` of a model with "
        f"'mean_field_normal'. Received: prior={prior!r} of {weight.name!r}"
    )


def _check(model: BayesianModel) -> None:
    if len(model.members) > 1:
        raise ValueError(
            "PartitionedVI fits one posterior; take one member, `model.members[0]`. "
            f"Received: {len(model.members)} members"
        )
    if not model.variational_layers:
        raise ValueError(
            "PartitionedVI needs layers with posteriors, such as "
            "`tfbbb.layers.DenseVariational`. Received: a model without any"
        )
    known = {id(v) for v in model.likelihood.learned_variables}
    for layer in model.variational_layers:
        _check_layer(layer)
        for weight in layer.variational_weights:
            known |= {id(variable) for variable in weight.variables.values()}
    others = [v.path for v in model.trainable_variables if id(v) not in known]
    if others:
        raise ValueError(
            "PartitionedVI needs a posterior for every trainable weight; convert the "
            "layer with `tfbbb.convert`, or set `layer.trainable = False`. "
            f"Received: trainable weights without a posterior: {others}"
        )


def _check_layer(layer: VariationalLayer) -> None:
    for weight in layer.variational_weights:
        if not isinstance(weight.posterior, MeanFieldNormal):
            raise ValueError(
                "PartitionedVI multiplies and divides independent normals: every "
                "posterior must be 'mean_field_normal'. Received: "
                f"posterior={weight.posterior!r} of {weight.name!r} in '{layer.name}'"
            )
    if not layer.kl_weight_is_automatic:
        raise ValueError(
            "Each partition has its own number of rows, so the weight of the KL "
            "divergence must be set for each; leave `kl_weight` out. "
            f"Received: kl_weight={float(layer.kl_weight.numpy())} in '{layer.name}'"
        )
