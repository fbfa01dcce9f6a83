"""The base class of variational families q(w)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from tfbbb.base.lazy import keras, ops, tf
from tfbbb.base.numbers import positive_number
from tfbbb.base.strategy import Registry, Strategy
from tfbbb.base.texts import snake_case
from tfbbb.base.types import ArrayLike, Initializer, Tensor
from tfbbb.bayes.families.arguments import PositiveNumber

AddWeight = Callable[..., Any]
Parameters = Mapping[str, Any]
# The shape of a weight tensor.
Sizes = tuple[int, ...]
# Parameters by name: shape, initial values, and False for one that is not trained.
Declared = dict[str, tuple[Any, ...]]
# Largest size of a covariance matrix.
MAX_COVARIANCE = 4096
InitialScale = Annotated[
    PositiveNumber,
    Field(le=10, description="Initial standard deviation, in units of 1/sqrt(fan_in)."),
]


class Posterior(Strategy):
    """A variational family q(w) over one weight tensor `w`.

    A posterior holds no variables: the layer holds them and passes their values to
    every method as `parameters`, with the `shape` of w. All values are float32,
    whatever the dtype of the layer.

    Parameters, noise and weights may have leading axes (members of an ensemble,
    samples), which broadcast: a parameter is [..., *its own shape], w is [..., *shape].
    A class with the decorator `tfbbb.posteriors.register` has a string name. Jobs may
    give the arguments of its constructor that are annotated with a `pydantic.Field`.

    Attributes:
        factorised: Whether the weights are independent normals under q, as the `local`
            estimator requires.
        symmetric: Whether q is symmetric about its mean, weight by weight, as the
            `flipout` estimator requires.
        reparameterised: Whether draws have a gradient in the parameters. If not, only
            the `score_function` estimator can train them.
        deterministic: Whether q is a point: all draws are the same.
        has_density: Whether `log_prob` is defined.
        shares_noise: Whether all weight tensors of a draw use the same noise, so that
            they are correlated.
    """

    factorised = False
    symmetric = False
    reparameterised = True
    deterministic = False
    has_density = True
    shares_noise = False

    def num_parameters(self, shape: Sizes) -> int:
        """Returns the number of parameters of q for a weight of this shape."""
        declared = self.declared(shape, 1, "zeros")
        return sum(math.prod(own) for own, *_ in declared.values())

    def covariance_size(self, shape: Sizes) -> int:
        """Returns the size of the largest covariance matrix for such a weight, or 0."""
        return 0

    def has_optimum(self, prior: Any) -> bool:
        """Whether training with this prior has an optimum; None stands for no prior."""
        if prior is None:
            return self.deterministic
        return prior.bounded or not self.deterministic

    def check_prior(self, prior: Any) -> None:
        """Raises ValueError if training with this prior, or None, has no optimum."""
        if self.has_optimum(prior):
            return
        if prior is None:
            raise ValueError(
                "Only a point has no prior (`posterior='point'`, maximum likelihood). "
                f"Received: prior=None, posterior={self!r}"
            )
        raise ValueError(
            f"The density of this prior has no upper bound, so the posterior "
            f"'{snake_case(type(self).__name__)}' has no optimum. Use e.g. 'normal', "
            "'laplace', 'student_t' or 'gamma_normal'. "
            f"Received: posterior={self!r}, prior={prior!r}"
        )

    def declared(self, shape: Sizes, fan_in: int, mean: Initializer) -> Declared:
        """Returns shape and initial values of each variational parameter, by its name.

        Initial values are a number or what `keras.initializers.get` takes: `mean` is
        that of E[w]. `fan_in` is the number of inputs that one output unit sums over.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `declared`.")

    def add_variables(
        self,
        add_weight: AddWeight,
        shape: Sizes,
        fan_in: int,
        mean_initializer: Initializer,
    ) -> dict[str, keras.Variable]:
        """Creates the parameters by `add_weight(name, shape, initializer)`."""
        size = self.covariance_size(shape)
        if size > MAX_COVARIANCE:
            raise ValueError(
                f"The posterior '{snake_case(type(self).__name__)}' would need a "
                f"covariance matrix of {size} × {size} for this tensor, more than "
                f"{MAX_COVARIANCE} × {MAX_COVARIANCE}. Use 'low_rank_normal' or "
                f"'mean_field_normal'. Received: shape={shape}"
            )
        variables = {}
        declared = self.declared(shape, fan_in, mean_initializer)
        for name, (own, initial, *trainable) in declared.items():
            if isinstance(initial, float):
                initial = keras.initializers.Constant(initial)
            variables[name] = add_weight(name, own, initial, *trainable)
        return variables

    def noise_shape(self, shape: Sizes) -> Sizes:
        """Returns the shape of the standard normal noise behind one draw."""
        return shape

    def mean(self, parameters: Parameters, shape: Sizes) -> Tensor:
        """Returns E[w], [..., *shape]."""
        raise NotImplementedError

    def variance(self, parameters: Parameters, shape: Sizes) -> Tensor:
        """Returns Var[w], element by element, [..., *shape]."""
        raise NotImplementedError

    def perturb(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        """Returns `w - E[w]`, [..., *shape], of noise [..., *noise_shape(shape)]."""
        raise NotImplementedError

    def draw(self, parameters: Parameters, noise: Tensor, shape: Sizes) -> Tensor:
        """Returns w, [..., *shape], as a function of standard normal noise."""
        mean = self.mean(parameters, shape)
        return mean + self.perturb(parameters, noise, shape)

    def log_prob(self, parameters: Parameters, weights: Tensor, shape: Sizes) -> Tensor:
        """Returns log q(weights), summed over the weights, [...], in nats."""
        raise ValueError(
            f"The posterior '{snake_case(type(self).__name__)}' has no density of one "
            "tensor. Use the `mean` and the `variance` of the weight, a prior with a "
            "closed form such as 'normal', or another posterior. "
            f"Received: posterior={self!r}"
        )

    def entropy(self, parameters: Parameters, shape: Sizes) -> Tensor:
        """Returns E[-log q(w)], [...], in nats, if it has a closed form."""
        raise NotImplementedError


registry = Registry(Posterior, package="tfbbb.posteriors")
register = registry.register


def matrix_sides(shape: Sizes) -> tuple[int, int]:
    """Returns the number of rows and of columns of a weight as a matrix."""
    return math.prod(shape[:-1]), shape[-1]


def sum_over_weights(values: ArrayLike, shape: Sizes) -> Tensor:
    """Returns `values`, [..., *shape], summed over the weights, [...]."""
    return ops.sum(values, axis=tuple(range(-len(shape), 0)))


def flatten_weights(values: ArrayLike, shape: Sizes) -> Tensor:
    """Returns `values`, [..., *shape], as [..., number of weights]."""
    return reshape_last_axes(values, len(shape), (math.prod(shape),))


def unflatten_weights(values: ArrayLike, shape: Sizes) -> Tensor:
    """Returns `values`, [..., number of weights], as [..., *shape]."""
    return reshape_last_axes(values, 1, shape)


def reshape_last_axes(values: ArrayLike, count: int, shape: Sizes) -> Tensor:
    """Returns `values` with its last `count` axes reshaped to `shape`."""
    values = tf.convert_to_tensor(values)
    leading = tf.shape(values)[: len(values.shape) - count]
    return tf.reshape(values, tf.concat([leading, shape], axis=0))


HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
NORMAL_ENTROPY = HALF_LOG_2PI + 0.5


class NormalPosterior(Posterior):
    """A multivariate normal q(w), whose entropy has a closed form.

    So does its KL divergence from every prior whose log density has a closed-form mean
    under normal marginals.

    Args:
        initial_scale: Standard deviation at the start, in units of `1/sqrt(fan_in)`
            (a bias has a fan-in of 1). Positive.
    """

    def __init__(self, initial_scale: InitialScale = 0.1):
        self.initial_scale = positive_number("initial_scale", initial_scale)

    def mean(self, parameters: Parameters, shape: Sizes) -> Tensor:
        return parameters["mean"]

    def squared_distance(
        self, parameters: Parameters, deviations: Tensor, shape: Sizes
    ) -> Tensor:
        """Returns `d^T C^-1 d` of deviations from the mean, [..., *shape], as [...]."""
        raise NotImplementedError

    def log_volume(self, parameters: Parameters, shape: Sizes) -> Tensor:
        """Returns `log |C| / 2`, [...], of the covariance C."""
        raise NotImplementedError

    def log_prob(self, parameters: Parameters, weights: Tensor, shape: Sizes) -> Tensor:
        if not self.has_density:
            return super().log_prob(parameters, weights, shape)
        deviations = weights - parameters["mean"]
        half = 0.5 * self.squared_distance(parameters, deviations, shape)
        volume = self.log_volume(parameters, shape)
        return -half - volume - math.prod(shape) * HALF_LOG_2PI

    def entropy(self, parameters: Parameters, shape: Sizes) -> Tensor:
        volume = self.log_volume(parameters, shape)
        return volume + math.prod(shape) * NORMAL_ENTROPY

    def initial_log_scale(self, fan_in: int) -> float:
        """Returns the logarithm of the standard deviation at the start."""
        return math.log(self.initial_scale) - 0.5 * math.log(fan_in)
