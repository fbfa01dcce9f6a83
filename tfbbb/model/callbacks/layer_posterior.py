"""Statistics of the posterior of one layer."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.bayes.divergences import closed_form_of, kl_divergence
from tfbbb.bayes.signal_to_noise import signal_to_noise
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers import VariationalLayer
from tfbbb.model.compression.weightwise_divergence import weightwise_divergence

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

    Attributes:
        kl: KL(q || p) in nats, summed over the layer's weights.
        bits_per_weight: `kl` in bits, divided by the number of weights.
        signal_to_noise: `|mean| / stddev` of all weights, flat.
        divergences: KL of each weight (of its marginal) in nats, flat; None if the
            weights of the layer are not normal under both q and p.
    """

    kl: float
    bits_per_weight: float
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
        bits_per_weight=kl / math.log(2) / sum(weight.size for weight in weights),
        signal_to_noise=np.concatenate([np.ravel(signal_to_noise(w)) for w in weights]),
        divergences=np.concatenate(exact) if len(exact) == len(weights) else None,
    )


def _divergence(weight: VariationalWeight, num_samples: int) -> float:
    draws = 1 if closed_form_of(weight) is not None else num_samples
    seeds = [noise.fold(tf.constant([0, 0]), index) for index in range(draws)]
    estimates = [
        kl_divergence(weight, functools.partial(weight.draw, seed)) for seed in seeds
    ]
    return float(np.mean(np.asarray(estimates, np.float64)))
