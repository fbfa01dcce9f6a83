"""The base class of likelihoods p(y | f)."""

import inspect
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfbbb.families.likelihoods import LikelihoodFamily
from tfbbb.types import ArrayLike, Tensor


class Likelihood(LikelihoodFamily, keras.Layer):
    """A distribution p(y | outputs) of one row's targets given the net's outputs.

    `outputs` [..., P] are the network's outputs for one row; leading dimensions (rows,
    posterior samples) pass through. Targets are in raw units throughout. A likelihood
    is a Keras layer, so that its parameters are trained, saved and exported with the
    model.

    A row may have several places (the steps of a sequence), each with its own targets;
    outputs are then [rows, places..., P]. All methods are pure TensorFlow, computed in
    float64 for float64 outputs and in float32 otherwise.

    Attributes:
        task: `"regression"` or `"classification"`.
        ordered: Whether targets have a distribution function and quantiles.
        support: The numbers that a target may be; None for classes.
        integrates_location: Whether outputs may be a mean with a variance, which the
            likelihood adds to that of the noise: see `with_location_variance`.
        num_classes: Number C of the classes of a classification, once it is built.
    """

    ordered: bool = False
    integrates_location: bool = False
    num_classes: int

    def __init__(self, *, members: int = 1, **kwargs: Any):
        super().__init__(**kwargs)
        # Of the model's ensemble, which sets it: each learns what it would alone.
        self.members = members

    def get_config(self) -> dict[str, Any]:
        """Returns the keyword arguments that make an equal likelihood.

        They include the arguments of its declaration in `tfbbb.families.likelihoods`.
        """
        config = super().get_config()
        for base in type(self).__mro__:
            if issubclass(base, LikelihoodFamily) and not issubclass(base, Likelihood):
                for name in inspect.get_annotations(base):
                    if name not in LikelihoodFamily.__annotations__:
                        config[name] = getattr(self, name)
        return config if self.members == 1 else {**config, "members": self.members}

    @property
    def discrete(self) -> bool:
        """Whether targets are integers.

        `cdf` is a step function then, `prob` the probability mass, and `quantile` the
        least integer whose `cdf` reaches the level.
        """
        return self.support is not None and self.support.integer

    @property
    def unbounded(self) -> bool:
        """Whether a target may be any real number."""
        return self.support is not None and self.support.unbounded

    @property
    def learns(self) -> bool:
        """Whether the likelihood has trainable variables of its own."""
        return False

    def num_outputs(self, num_targets: int) -> int:
        """Returns how many outputs the network needs for `num_targets` targets."""
        raise NotImplementedError

    @property
    def adapted(self) -> bool:
        """Whether `adapt` has been called, or there is nothing to adapt."""
        return True

    def adapt(self, targets: ArrayLike) -> None:
        """Fixes shift and scale of the targets at those of `targets`, [n, k].

        Only the first call has an effect.
        """

    def check_targets(self, targets: ArrayLike) -> np.ndarray:
        """Returns `targets` in the shape that `log_prob` takes.

        Raises:
            ValueError: If they cannot be targets of this likelihood.
        """
        raise NotImplementedError

    def negative_log_likelihood(self, targets: ArrayLike, outputs: Tensor) -> tf.Tensor:
        """Returns -log p(targets | outputs) of each row, [rows].

        Args:
            targets: Targets of a minibatch in any shape that `check_targets` takes.
            outputs: [rows, ..., P].
        """
        outputs = tf.convert_to_tensor(outputs)
        log_prob = self.log_prob(self.aligned(targets, outputs), outputs)
        axes = range(1, len(outputs.shape) - 1)
        return -tf.reduce_sum(log_prob, axis=list(axes))

    def aligned(self, targets: ArrayLike, outputs: tf.Tensor) -> tf.Tensor:
        """Returns a minibatch's targets in the shape that `log_prob` takes.

        Between two datasets, Keras may retrace with targets of unknown rank.
        """
        raise NotImplementedError

    def of_members(self, outputs: Tensor, member: Any) -> tf.Tensor:
        """Returns outputs with what the likelihood has learned for their member.

        With several members, all other methods take these outputs, whose last
        dimension may be larger than the network's.

        Args:
            outputs: [..., P], what the network gives.
            member: Index of the member that gave them; broadcasts against [...].
        """
        return tf.convert_to_tensor(outputs)

    def with_location_variance(self, outputs: Tensor, variance: Tensor) -> tf.Tensor:
        """Returns outputs whose first k are the means of normal ones, [..., P + k].

        A linear last layer is integrated so: given the layer before, the network's
        means are normal under the posterior. Of these outputs `log_prob`, `cdf`,
        `prob`, `quantile` and `sample` are those of the targets with both variances,
        while `parameters`, `variance` and `entropy` stay those of the noise alone.

        Args:
            outputs: [..., P], as `of_members` returns them.
            variance: Variance of the first k outputs, in the units of the network,
                [..., k].

        Raises:
            NotImplementedError: If `integrates_location` is False.
        """
        raise NotImplementedError(f"{type(self).__name__} integrates no location.")

    def location_variance(self, outputs: Tensor) -> tf.Tensor:
        """Returns what `with_location_variance` added, [..., k], in raw units.

        It is 0 where nothing was.
        """
        return tf.zeros_like(self.mean(outputs))

    def parameters(self, outputs: Tensor) -> dict[str, tf.Tensor]:
        """Returns the parameters of p(y | outputs) in raw units, by their usual names.

        Each is [..., k], or [..., k, components] of a mixture.
        """
        raise NotImplementedError

    def mean(self, outputs: Tensor) -> tf.Tensor:
        """Returns E[y | outputs], [..., k]; of classes, that of their one-hot code."""
        raise NotImplementedError

    def variance(self, outputs: Tensor) -> tf.Tensor:
        """Returns Var[y | outputs], [..., k], that of the noise."""
        raise NotImplementedError

    def entropy(self, outputs: Tensor) -> tf.Tensor:
        """Returns the entropy of y given outputs, [...], in nats.

        That of all targets together; of a density, in their raw units.
        """
        raise NotImplementedError

    def probabilities(self, outputs: Tensor) -> tf.Tensor:
        """Returns the probability of each class, [..., C]."""
        raise NotImplementedError(f"{type(self).__name__} has no classes.")

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> tf.Tensor:
        """Returns log p(targets | outputs), [...], in nats, summed over the targets."""
        raise NotImplementedError

    def cdf(self, values: ArrayLike, outputs: Tensor) -> tf.Tensor:
        """Returns P(y <= values | outputs), target by target, [..., k]."""
        raise NotImplementedError(f"{type(self).__name__} has no ordered targets.")

    def prob(self, values: ArrayLike, outputs: Tensor) -> tf.Tensor:
        """Returns the density or mass of y at `values`, target by target, [..., k]."""
        raise NotImplementedError(f"{type(self).__name__} has no ordered targets.")

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> tf.Tensor:
        """Returns the quantiles of y given outputs, target by target, [..., k]."""
        raise NotImplementedError(f"{type(self).__name__} has no ordered targets.")

    @property
    def noise_size(self) -> int:
        """How many standard normals `sample` takes for a draw."""
        raise NotImplementedError

    def sample(self, outputs: Tensor, noise: Tensor) -> tf.Tensor:
        """Returns draws of y given outputs, [..., k]; of classes their indices, [...].

        Args:
            outputs: [..., P].
            noise: Standard normal noise, [..., `noise_size`].
        """
        raise NotImplementedError
