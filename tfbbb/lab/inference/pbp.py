"""Probabilistic backpropagation."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.numbers import int32, positive_integer, positive_number
from tfbbb.base.types import ArrayLike, Identifier, Options, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.priors import GammaNormal
from tfbbb.inference.batches import Batches
from tfbbb.inference.method import InferenceMethod, as_bayesian_model
from tfbbb.inference.normal_noise import check_normal, noise_of, set_noise
from tfbbb.lab.inference.dense_chain import DenseChain, set_normals
from tfbbb.lab.inference.gamma import Gamma
from tfbbb.layers import DenseVariational
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.training_rows import TrainingRows

# Tensors in the nested structure of a loop.
Tensors = Sequence[tf.Tensor]
# A compiled loop takes at most this many rows, so that it serves tables of any length.
_BLOCK = 512
_LOG_2PI = math.log(2.0 * math.pi)
# Features of a larger root mean square get a warning.
_LARGEST_FEATURE = 10.0
# A cavity of the prior with a larger variance is as good as improper.
_LARGEST_VARIANCE = 1e6
# Far below every variance that matters, and above the smallest numbers of float32.
_TINY = 1e-36


@dataclass(frozen=True)
class State:
    """The approximate posterior, and the factors of the prior in it.

    `means` and `variances` of the weights of each layer are [inputs (+ 1), units];
    `noise` is q of the noise precision of each target, `precision` q of that of all
    weights. `factors` [weights, 4] are natural parameters of the approximation of
    N(w; 0, 1 / lambda): of a normal of w and of a gamma of lambda.
    """

    means: list[tf.Tensor]
    variances: list[tf.Tensor]
    noise: Gamma
    precision: Gamma
    factors: tf.Tensor


class PBP(InferenceMethod):
    """Probabilistic backpropagation (Hernandez-Lobato and Adams 2015).

    Row by row, assumed-density filtering makes the posterior

        q(w) = prod_i N(w_i; m_i, v_i),   q(gamma) = Gamma(a, b)

    the factorised distribution with the moments of `q(w, gamma) p(y | x, w, gamma)`:

        m <- m + v dlogZ/dm,   v <- v - v^2 ((dlogZ/dm)^2 - 2 dlogZ/dv)
        Z = N(y; E[f], Var[f] + b / (a - 1))

    where mean and variance of the output f propagate through the layers, with the exact
    moments of rectified normals. The precision gamma of the noise, and the precision
    lambda of the weights, which all layers share, have gamma priors; expectation
    propagation refines the factors `N(w_i; 0, 1 / lambda)` after each pass. A layer of
    n inputs divides its products by `sqrt(n + 1)` (`sqrt(n)` without a bias); the
    returned network has the weights `w / sqrt(n + 1)`, and
    `GammaNormal(shape, rate / (n + 1))` for their prior.

    Each pass counts the rows again, so that variances are smaller than those of one
    pass, as in the paper. There is no log evidence; the diagnostics give the sum of log
    Z in each pass.

    Inputs should have means near 0 and standard deviations near 1: put a
    `keras.layers.Normalization` first, or standardise the table.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-2, 2, 60)[:, None]
    >>> inputs = keras.Input((1,))
    >>> hidden = tfbbb.layers.DenseVariational(20, activation="relu")(inputs)
    >>> network = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    >>> model = tfbbb.lab.inference.PBP(epochs=5).fit(network, x, np.abs(x), verbose=0)
    >>> model.predictive(x).mean.shape
    (60, 1)

    Args:
        epochs: Passes over the rows, a positive integer.
        weight_shape: Shape of the gamma prior of the weights' precision, more than 1.
        weight_rate: Its rate, positive.
        noise_shape: Shape of the gamma prior of the noise precision in standard units
            of the targets, more than 1.
        noise_rate: Its rate, positive.
        seed: Integer that fixes the initial means and the orders of the rows.

    Raises:
        ValueError: An argument is out of range.
    """

    epochs: int
    weight_shape: float
    weight_rate: float
    noise_shape: float
    noise_rate: float
    seed: int

    def __init__(
        self,
        epochs: int = 40,
        weight_shape: float = 6.0,
        weight_rate: float = 6.0,
        noise_shape: float = 6.0,
        noise_rate: float = 6.0,
        seed: int = 0,
    ):
        self.epochs = positive_integer("epochs", epochs)
        self.weight_shape = _above_one("weight_shape", weight_shape)
        self.weight_rate = positive_number("weight_rate", weight_rate)
        self.noise_shape = _above_one("noise_shape", noise_shape)
        self.noise_rate = positive_number("noise_rate", noise_rate)
        self.seed = int32("seed", seed, least=0)

    def fit(
        self,
        model: keras.Model,
        x: Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        batch_size: int = 256,
        verbose: int = 1,
    ) -> BayesianModel:
        """Returns a model with the factorised normal posteriors of the weights.

        Its likelihood is `Normal` with the variance E[1 / gamma] of the noise, or with
        the given noise of `Normal(scale=...)`. The network has dense layers with the
        activation ReLU, and a last one without; its posteriors and priors are not used.
        """
        model = as_bayesian_model(model, likelihood)
        check_normal(model.likelihood, "PBP")
        chain = DenseChain(model, "PBP", hidden_layers=True)
        batches = Batches(x, y, sample_weight, batch_size)
        features, targets = chain.rows(batches)
        _warn_of_units(features)
        new = with_posterior(model, "mean_field_normal", layer_options=self._priors)
        with new.training_on(TrainingRows(batches.targets, batches.size)):
            targets = new.likelihood.check_targets(targets)
        shift, scale = (
            np.asarray(v, np.float64)
            for v in (new.likelihood.target_shift, new.likelihood.target_scale)
        )
        layers = DenseChain(new, "PBP", hidden_layers=True).layers
        if not (new.likelihood.standardize or layers[-1].use_bias):
            shift = np.zeros_like(shift)  # No bias can express it.
        targets = (targets - shift) / scale
        learns_noise = new.likelihood.scale is None
        state = self._prior_state(layers, targets.shape[1])
        if not learns_noise:
            # Gamma(a, b) for which the filter's E[1 / gamma] = b / (a - 1) is given.
            noise = Gamma(
                tf.fill(scale.shape, _float64(2.0)), noise_of(new.likelihood) ** 2
            )
            state = replace(state, noise=noise)
        state, log_z = self._filtered(state, features, targets, learns_noise, verbose)
        for layer, mean, variance in zip(
            layers, state.means, state.variances, strict=True
        ):
            # The factor 1 / sqrt(size) of the products is that of the weights.
            size = mean.shape[0]
            mean, variance = mean.numpy() / math.sqrt(size), variance.numpy() / size
            if layer is layers[-1] and not new.likelihood.standardize:
                # The network gives the location in the units of the targets.
                mean, variance = mean * scale, variance * scale**2
                if layer.use_bias:
                    mean[-1] += shift
            set_normals(layer, mean, variance)
        if learns_noise:
            set_noise(new.likelihood, np.sqrt(state.noise.mean_of_inverse))
        units = len(targets) * np.log(scale).sum()
        new.inference = self.result(
            log_z_by_epoch=[value - units for value in log_z],
            **_as_json("noise", state.noise if learns_noise else None),
            **_as_json("weight", state.precision),
        )
        return new

    def _priors(self, layer: DenseVariational) -> dict[str, GammaNormal]:
        size = layer.kernel.shape[0] + layer.use_bias
        prior = GammaNormal(self.weight_shape, self.weight_rate / size)
        return {"prior": prior, "bias_prior": prior}

    def _prior_state(
        self, layers: Sequence[DenseVariational], num_targets: int
    ) -> "State":
        """Returns q before the first row: the prior, with random means."""
        generator = np.random.default_rng(self.seed)
        shapes = [
            (layer.kernel.shape[0] + layer.use_bias, layer.units) for layer in layers
        ]
        size = sum(math.prod(shape) for shape in shapes)
        precision = (self.weight_shape - 1.0) / self.weight_rate
        return State(
            [tf.constant(generator.normal(0.0, s[0] ** -0.5, s)) for s in shapes],
            [tf.fill(shape, _float64(1.0 / precision)) for shape in shapes],
            Gamma(
                tf.fill([num_targets], _float64(self.noise_shape)),
                tf.fill([num_targets], _float64(self.noise_rate)),
            ),
            Gamma(_float64(self.weight_shape), _float64(self.weight_rate)),
            tf.constant([[0.0, precision, 0.0, 0.0]] * size, tf.float64),
        )

    def _filtered(
        self,
        state: "State",
        features: np.ndarray,
        targets: np.ndarray,
        learns_noise: bool,
        verbose: int,
    ) -> tuple["State", list[float]]:
        """Returns q after all passes, and the sum of log Z in each."""
        generator = np.random.default_rng([self.seed, 1])
        bar = keras.utils.Progbar(self.epochs, verbose=verbose, unit_name="epoch")
        sums = []
        for epoch in range(self.epochs):
            order = generator.permutation(len(targets))
            log_z = 0.0
            for first in range(0, len(order), _BLOCK):
                rows = order[first : first + _BLOCK]
                padding = [(0, _BLOCK - len(rows)), (0, 0)]
                *q, found = filter_rows(
                    state.means,
                    state.variances,
                    tuple(state.noise),
                    np.pad(features[rows], padding),
                    np.pad(targets[rows], padding),
                    tf.constant(len(rows)),
                    learns_noise=learns_noise,
                )
                state = replace(state, means=q[0], variances=q[1], noise=Gamma(*q[2]))
                log_z += float(found)
            state = _with_refined_prior(state)
            sums.append(log_z)
            bar.update(epoch + 1, [("log_z", log_z / len(targets))])
        return state, sums


def rectified(mean: tf.Tensor, variance: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns mean and variance of `max(x, 0)` of normals x (Frey and Hinton 1999).

    With `s^2` the variance and `a = mean / s`,

        E = mean Phi(a) + s phi(a)
        Var = s^2 Phi(a) - E (E - mean)

    where the usual `E[max(x, 0)^2] - E^2` would cancel for means far above s: here
    `E - mean = E[max(-x, 0)]`, which is exactly 0 there.
    """
    root = tf.sqrt(2.0 * variance + _TINY)
    scaled = mean / root
    positive = 0.5 + 0.5 * tf.math.erf(scaled)
    density = tf.exp(-tf.square(scaled))
    expected = mean * positive + (0.5 / math.sqrt(math.pi)) * root * density
    return expected, tf.nn.relu(variance * positive - expected * (expected - mean))


def output_moments(
    means: Sequence[tf.Tensor], variances: Sequence[tf.Tensor], x: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns E[f(x)] and Var[f(x)] of a ReLU network with normal weights, [rows, k].

    The units of a layer count as independent normals, as in the paper. A row of weights
    after those of the inputs is the bias.
    """
    mean, variance = x, tf.zeros_like(x)
    for index, (m, v) in enumerate(zip(means, variances, strict=True)):
        if index:
            mean, variance = rectified(mean, variance)
        size = m.shape[0]
        if size > mean.shape[-1]:
            mean = tf.concat([mean, tf.ones_like(mean[:, :1])], -1)
            variance = tf.concat([variance, tf.zeros_like(variance[:, :1])], -1)
        variance = (variance @ (tf.square(m) + v) + tf.square(mean) @ v) / size
        mean = mean @ m / math.sqrt(size)
    return mean, variance


@tf.function(jit_compile=True)
def filter_rows(
    means: list[tf.Tensor],
    variances: list[tf.Tensor],
    noise: tuple[tf.Tensor, tf.Tensor],
    x: tf.Tensor,
    y: tf.Tensor,
    count: tf.Tensor,
    learns_noise: bool,
) -> tuple[Tensors, ...]:
    """Includes the first `count` rows in q, one after the other."""

    def include(
        index: tf.Tensor,
        means: Tensors,
        variances: Tensors,
        noise: Tensors,
        total: tf.Tensor,
    ) -> tuple[Tensors, ...]:
        noise = Gamma(*noise)
        target = y[index]
        with tf.GradientTape() as tape:
            tape.watch([means, variances])
            mean, variance = output_moments(means, variances, x[index][tf.newaxis])
            deviation, variance = target - mean[0], variance[0]
            log_z = _log_normal(deviation, variance + noise.mean_of_inverse)
            log_z_of_row = tf.reduce_sum(log_z)
        of_means, of_variances = tape.gradient(log_z_of_row, (means, variances))
        updated = [
            _with_moments(*q)
            for q in zip(means, variances, of_means, of_variances, strict=True)
        ]
        if learns_noise:
            noise = _updated_gamma(noise, tf.square(deviation), variance)
        return (
            index + 1,
            [m for m, _ in updated],
            [v for _, v in updated],
            tuple(noise),
            total + log_z_of_row,
        )

    start = (tf.constant(0), means, variances, tuple(noise), _float64(0.0))
    _, *found = tf.while_loop(lambda index, *_: index < count, include, start)
    return tuple(found)


@tf.function(jit_compile=True)
def refine_prior(
    precision: tuple[tf.Tensor, tf.Tensor], weights: tf.Tensor, factors: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Refines the approximation of each weight's prior once, one after the other."""

    def refine(before: Tensors, given: Tensors) -> Tensors:
        precision = Gamma(*before[0])
        (mean, variance), factor = tf.unstack(given[0]), given[1]
        # The cavity: q without this factor.
        natural = tf.stack(
            [mean / variance, 1.0 / variance, precision.shape, precision.rate]
        )
        cavity = natural - factor
        cavity_variance = 1.0 / cavity[1]
        cavity_mean = cavity_variance * cavity[0]
        cavity_precision = Gamma(cavity[2], cavity[3])
        # The moments with the exact factor.
        total = cavity_variance + cavity_precision.mean_of_inverse
        square = tf.square(cavity_mean)
        new_mean = cavity_mean * (1.0 - cavity_variance / total)
        new_variance = cavity_variance * (1.0 - cavity_variance / total)
        new_precision = _updated_gamma(cavity_precision, square, cavity_variance)
        new_natural = tf.stack(
            [new_mean / new_variance, 1.0 / new_variance, *new_precision]
        )
        usable = (
            (cavity[1] > 1.0 / _LARGEST_VARIANCE)
            & (cavity[2] > 1.0)
            & (cavity[3] > 0.0)
            & (new_variance > 0.0)
            & tf.reduce_all(tf.math.is_finite(new_natural))
        )
        return (
            tuple(
                tf.where(usable, new, old)
                for new, old in zip(new_precision, precision, strict=True)
            ),
            tf.where(usable, tf.stack([new_mean, new_variance]), given[0]),
            tf.where(usable, new_natural - cavity, factor),
        )

    first = (tuple(precision), tf.zeros([2], tf.float64), tf.zeros([4], tf.float64))
    (shapes, rates), weights, factors = tf.scan(refine, (weights, factors), first)
    return (shapes[-1], rates[-1]), weights, factors


def _with_refined_prior(state: State) -> State:
    flat = [
        tf.concat([tf.reshape(part, [-1]) for part in parts], 0)
        for parts in (state.means, state.variances)
    ]
    precision, weights, factors = refine_prior(
        tuple(state.precision), tf.stack(flat, -1), state.factors
    )
    sizes = [math.prod(mean.shape) for mean in state.means]
    means, variances = (
        [
            tf.reshape(part, like.shape)
            for part, like in zip(tf.split(column, sizes), state.means, strict=True)
        ]
        for column in tf.unstack(weights, axis=-1)
    )
    return State(means, variances, state.noise, Gamma(*precision), factors)


def _with_moments(
    mean: tf.Tensor, variance: tf.Tensor, of_mean: tf.Tensor, of_variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the moments of `q Z`, from the derivatives of log Z (Minka 2001)."""
    new_mean = mean + variance * of_mean
    new_variance = variance - tf.square(variance) * (
        tf.square(of_mean) - 2.0 * of_variance
    )
    # A weight whose variance would not be positive stays as it is.
    usable = (new_variance > 0.0) & tf.math.is_finite(new_mean + new_variance)
    return (tf.where(usable, new_mean, mean), tf.where(usable, new_variance, variance))


def _updated_gamma(precision: Gamma, square: tf.Tensor, variance: tf.Tensor) -> Gamma:
    """Returns q of a precision after an observed deviation (paper, equations 14, 15).

    It has the first two moments of `Gamma(precision) N(deviation; 0, variance + 1 /
    precision)`, whose normalizer `Z(shape)` is approximated as in the paper.
    """
    shape, rate = precision
    log_z, log_z1, log_z2 = (
        _log_normal(tf.sqrt(square), variance + rate / (shape + more - 1.0))
        for more in (0.0, 1.0, 2.0)
    )
    ratio = tf.exp(log_z2 - 2.0 * log_z1 + log_z)
    new_shape = 1.0 / (ratio * (shape + 1.0) / shape - 1.0)
    new_rate = 1.0 / (
        tf.exp(log_z2 - log_z1) * (shape + 1.0) / rate
        - tf.exp(log_z1 - log_z) * shape / rate
    )
    usable = (new_shape > 1.0) & (new_rate > 0.0) & tf.math.is_finite(new_shape)
    return Gamma(tf.where(usable, new_shape, shape), tf.where(usable, new_rate, rate))


def _warn_of_units(features: np.ndarray) -> None:
    size = np.sqrt(np.mean(np.square(features), axis=0))
    if size.max() > _LARGEST_FEATURE:
        warnings.warn(
            "The prior of PBP is for features near 0 with standard deviations near 1; "
            "standardise them, or put a `keras.layers.Normalization` first. Received: "
            f"feature {int(size.argmax())} with the root mean square {size.max():.3g}",
            stacklevel=3,
        )


def _log_normal(deviation: tf.Tensor, variance: tf.Tensor) -> tf.Tensor:
    return -0.5 * (_LOG_2PI + tf.math.log(variance) + tf.square(deviation) / variance)


def _float64(value: float) -> tf.Tensor:
    return tf.constant(value, tf.float64)


def _as_json(name: str, precision: Gamma | None) -> Options:
    if precision is None:
        return {}
    return {
        f"{name}_shape": np.asarray(precision.shape).tolist(),
        f"{name}_rate": np.asarray(precision.rate).tolist(),
    }


def _above_one(name: str, value: float) -> float:
    if positive_number(name, value) <= 1.0:
        raise ValueError(
            f"`{name}` must be more than 1, for the variance to have a mean. "
            f"Received: {name}={value!r}"
        )
    return float(value)
