"""Statistics of the posterior of one layer."""

import functools
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.private_apis import sublayers
from tfbbb.bayes.divergences import closed_form_of, kl_divergence
from tfbbb.bayes.divergences.closed_forms import entropy_of
from tfbbb.bayes.posteriors.posterior import NORMAL_ENTROPY, NormalPosterior
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers import VariationalLayer

# KL in nats of a weight that has collapsed: of a mean 0.14 prior standard deviations
# from the prior mean, or of a standard deviation a tenth off the prior's.
COLLAPSED_BELOW = 0.01
# Share of collapsed weights from which on a layer has collapsed.
COLLAPSED_SHARE = 0.9
CURE_OF_COLLAPSE = (
    "fewer units, a warm-up (`kl_schedule='linear_warmup'`), a lower temperature or a "
    "narrower prior"
)


@dataclass(frozen=True)
class LayerPosterior:
    """Statistics of the posterior of a layer, averaged over members.

    `kl` is KL(q || p) in nats, `signal_to_noise` is `|mean| / stddev` of all weights,
    flat, and `divergences` the KL of each weight (of its marginal), None if the weights
    of the layer are not normal under both q and p.
    """

    kl: float
    signal_to_noise: np.ndarray
    divergences: np.ndarray | None

    @property
    def collapsed(self) -> float | None:
        """The share of the weights whose KL is less than `COLLAPSED_BELOW` nats."""
        if self.divergences is None:
            return None
        return float(np.mean(self.divergences < COLLAPSED_BELOW))


def layer_posterior(layer: VariationalLayer, num_samples: int = 16) -> LayerPosterior:
    """Measures a built layer, by draws where the KL has no closed form."""
    weights = layer.variational_weights
    kl = sum(_divergence(weight, num_samples) for weight in weights)
    divergences = [weightwise_divergence(weight) for weight in weights]
    exact = [np.ravel(d) for d in divergences if d is not None]
    return LayerPosterior(
        kl=kl,
        signal_to_noise=np.concatenate([np.ravel(signal_to_noise(w)) for w in weights]),
        divergences=np.concatenate(exact) if len(exact) == len(weights) else None,
    )


def signal_to_noise(weight: VariationalWeight) -> np.ndarray:
    """Returns `|mean| / stddev` of each weight under q (Blundell et al. 2015).

    The ratio of a weight without variance is infinite, or 0 if the weight is exactly 0.

    Example:

    >>> import tfbbb
    >>> layer = tfbbb.layers.DenseVariational(2, kernel_initializer="ones")
    >>> layer.build((None, 1))
    >>> layer.kernel.stddev.numpy()
    array([[0.02, 0.02]], dtype=float32)
    >>> tfbbb.compression.signal_to_noise(layer.kernel)
    array([[50., 50.]])

    Args:
        weight: A weight tensor of a variational layer.

    Returns:
        float64, of the weight's shape (with members [members, *shape]).
    """
    mean = np.abs(np.asarray(weight.mean, np.float64))
    stddev = np.asarray(weight.stddev, np.float64)
    ratio = np.zeros_like(mean)
    with np.errstate(divide="ignore"):
        return np.divide(mean, stddev, out=ratio, where=mean != 0)


def _divergence(weight: VariationalWeight, num_samples: int) -> float:
    draws = 1 if closed_form_of(weight) is not None else num_samples
    seeds = [noise.fold(tf.constant([0, 0]), index) for index in range(draws)]
    estimates = [
        kl_divergence(weight, functools.partial(weight.draw, seed)) for seed in seeds
    ]
    return float(np.mean(np.asarray(estimates, np.float64)))


def variational_layers(model: keras.Layer) -> list[VariationalLayer]:
    """Returns the variational layers within a model, in a fixed order."""
    return [layer for layer in sublayers(model) if isinstance(layer, VariationalLayer)]


def variational_weights(model: keras.Layer) -> list[VariationalWeight]:
    """Returns the weights with a posterior within a model, in a fixed order."""
    return [w for layer in variational_layers(model) for w in layer.variational_weights]


def named_layers(model: keras.Model) -> dict[str, VariationalLayer]:
    """Returns the built variational layers of a model by name.

    A layer whose name is not unique gets its whole path.
    """
    layers = [layer for layer in variational_layers(model) if layer.built]
    names = [layer.name for layer in layers]
    return {
        layer.name if names.count(layer.name) == 1 else layer.path: layer
        for layer in layers
    }


def weightwise_divergence(weight: VariationalWeight) -> np.ndarray | None:
    """Returns KL(q_i || p_i) of each weight in nats, if both are normal, else None.

    The closed form gives only the sum over the weights. Its derivatives in the means
    are `slope_i = (mean_i - m_i) / s_i^2` and `curvature_i = 1 / s_i^2` of `p_i =
    N(m_i, s_i^2)`, and with `r_i = variance_i / s_i^2` of the marginal of q, `KL_i =
    (r_i + slope_i^2 / curvature_i - 1 - log r_i) / 2`.
    """
    closed_form = closed_form_of(weight)
    if closed_form is None or not isinstance(weight.posterior, NormalPosterior):
        return None
    mean = weight.variables["mean"].value
    with tf.GradientTape() as second:
        second.watch(mean)
        with tf.GradientTape() as first:
            first.watch(mean)
            total = tf.reduce_sum(closed_form(weight))
        slope = first.gradient(total, mean)
    curvature = None if slope is None else second.gradient(slope, mean)
    if curvature is None:
        return None
    # Weights with K members multiply each of their derivatives by K.
    slope = np.asarray(slope, np.float64) / weight.members
    curvature = np.asarray(curvature, np.float64) / weight.members**2
    log_variance = _log_variance(weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.exp(log_variance) * curvature
        log_ratio = log_variance + np.log(curvature)
        divergence = 0.5 * (ratio + slope**2 / curvature - 1.0 - log_ratio)
    entropy = np.asarray(entropy_of(weight), np.float64).sum()
    of_marginals = 0.5 * log_variance.sum() + log_variance.size * NORMAL_ENTROPY
    total = float(total) - (of_marginals - entropy)
    # The tolerance allows for the float32 precision of the total.
    adds_up = np.isclose(divergence.sum(), total, rtol=1e-3, atol=1e-5 * ratio.size)
    return divergence if adds_up else None


def _log_variance(weight: VariationalWeight) -> np.ndarray:
    if has_independent_normals(weight):
        # Finite also for removed weights, whose variance is 0 in single precision.
        log_scale = weight.variables["log_scale"].numpy()
        return 2.0 * np.asarray(log_scale, np.float64)
    return np.log(np.asarray(weight.variance, np.float64))


def has_independent_normals(weight: VariationalWeight) -> bool:
    """Whether q(w) is a product of normals, each with its own mean and scale."""
    return weight.posterior.factorised and {"mean", "log_scale"} <= set(
        weight.variables
    )
