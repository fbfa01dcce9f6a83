"""Description length in bits, and the evidence lower bound, which is its negative."""

import math
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.divergences import closed_form_of, kl_divergence
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.lab.evidence.estimate import EvidenceEstimate, check_density
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.compression.pruning import is_removed, weights_of
from tfbbb.model.layer_posterior import weightwise_divergence
from tfbbb.prediction import Predictive

# Of a divergence that has no closed form.
_DRAWS = 16


@dataclass(frozen=True)
class DescriptionLength:
    """A description length and its parts, in bits.

    Attributes:
        weight_bits: `KL(q || p) / ln 2` of the kept weights.
        mask_bits: `log2 binomial(weights, removed)`, the cost of stating which weights
            are removed.
        data_bits: `E_q[-log p(y | x, w)] / ln 2` of all rows.
        data_bits_standard_error: Standard error of `data_bits`, from the draws.
    """

    weight_bits: float
    mask_bits: float
    data_bits: float
    data_bits_standard_error: float

    @property
    def total(self) -> float:
        """The description length in bits."""
        return self.weight_bits + self.mask_bits + self.data_bits


def description_length(
    model: BayesianModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    num_samples: int = 100,
    seed: int = 0,
) -> DescriptionLength:
    """Computes the minimum description length of a model with its training data.

    With bits-back coding (Hinton and van Camp 1993; Graves 2011), sending the weights
    costs the divergence of q from p. Sending the targets given the weights costs the
    negative log likelihood, on average over q:

        bits = [KL(q(w) || p(w)) + E_q sum_i -log p(y_i | x_i, w)] / ln 2

    This is the negative evidence lower bound over all rows. For a pruned model only the
    kept weights are sent, after a code that states which weights are removed: with k of
    n weights removed, all sets of k are equally likely, which costs
    `log2 binomial(n, k)` bits. The length does not count the number k itself (at most
    log2(n + 1) bits, the same for every k) nor parameters without a posterior, such as
    a learned noise. For real targets the data bits come from a density, at a precision
    of one unit: only differences of lengths have a meaning, and the total can be
    negative.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((1,))
    >>> layer = tfbbb.layers.DenseVariational(1, kernel_initializer="ones")
    >>> model = tfbbb.BayesianModel(inputs, layer(inputs))
    >>> length = tfbbb.lab.evidence.description_length(
    ...     model, [[1.0], [2.0]], [[1.0], [2.0]]
    ... )
    >>> length.weight_bits, length.mask_bits
    (11.73185, 0.0)

    Args:
        model: A model with one member and a posterior with a density, pruned or not.
        x: Inputs of the training rows.
        y: Targets of these rows, in raw units.
        num_samples: Number of draws for the expectation under q, at least two.
        seed: Seed of the draws.

    Raises:
        ValueError: The model has several members or point posteriors, is recalibrated,
            or has removed weights whose prior is not an independent normal for each
            weight; or `num_samples` is below two.
    """
    check_density(model)
    weights = [weight for layer in weights_of(model).values() for weight in layer]
    removed = sum(int(is_removed(weight).sum()) for weight in weights)
    # `method="weight"` draws all weights; other methods may integrate the last layer.
    prediction = model.predictive(x, num_samples, method="weight", seed=seed)
    bits, error = _data_bits(prediction, y)
    return DescriptionLength(
        weight_bits=sum(_kept_divergence(weight) for weight in weights) / math.log(2),
        mask_bits=_log2_binomial(sum(weight.size for weight in weights), removed),
        data_bits=bits,
        data_bits_standard_error=error,
    )


def elbo(
    model: BayesianModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    num_samples: int = 100,
    seed: int = 0,
) -> EvidenceEstimate:
    """Returns the evidence lower bound of all rows.

        ELBO = E_q[log p(y | x, w)] - KL(q(w) || p(w)) = log p(y) - KL(q(w) || p(w | y))

    The likelihood is averaged over draws of all weights, in pairs of opposite noise;
    the divergence is in closed form where the kit has one. Parameters without a
    posterior, such as a learned noise, are at their values. It is the negative
    description length of model and data, in nats.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> bound = tfbbb.lab.evidence.elbo(model, [[1.0], [2.0]], [[1.0], [2.0]])
    >>> bound.value < 0.0 < bound.standard_error
    True

    Args:
        model: A model with one member and a posterior with a density.
        x: Inputs of the training rows.
        y: Targets of these rows, in raw units.
        num_samples: Number of draws.
        seed: Seed of the draws.

    Returns:
        The bound in nats. The standard error is that of the draws of the likelihood.

    Raises:
        ValueError: The model has several members or point posteriors, is recalibrated,
            or `num_samples` is below two.
    """
    length = description_length(model, x, y, num_samples=num_samples, seed=seed)
    nats = math.log(2.0)
    return EvidenceEstimate(
        -nats * (length.weight_bits + length.data_bits),
        nats * length.data_bits_standard_error,
        {
            "expected_log_likelihood": -nats * length.data_bits,
            "divergence": nats * length.weight_bits,
        },
    )


def _kept_divergence(weight: VariationalWeight) -> float:
    """Returns the divergence of the kept weights in nats."""
    removed = is_removed(weight)
    if removed.all():
        return 0.0
    if not removed.any():
        return _total_divergence(weight)
    divergences = weightwise_divergence(weight)
    if divergences is None:
        raise ValueError(
            "The divergence of the kept weights alone is known only under normal "
            "priors that are independent for each weight; use the prior 'normal'. "
            f"Received: {weight.name} with prior={weight.prior!r}"
        )
    return float(divergences[~removed].sum())


def _total_divergence(weight: VariationalWeight) -> float:
    draws = 1 if closed_form_of(weight) is not None else _DRAWS

    def draw() -> Tensor:
        return weight.draw(tf.constant([0, 0]), samples=draws)

    return float(np.mean(np.asarray(kl_divergence(weight, draw), np.float64)))


def _data_bits(prediction: Predictive, y: ArrayLike) -> tuple[float, float]:
    """Returns `E_q sum_i -log2 p(y_i | x_i, w)` and its standard error, in bits.

    This averages logs over the draws, because sender and receiver use one draw with
    bits-back coding.
    """
    by_draw = -prediction.log_prob_of_draws(y).sum(axis=0) / math.log(2)
    # Consecutive draws are pairs with opposite noise.
    pairs = by_draw.reshape(-1, 2).mean(axis=1)
    error = pairs.std(ddof=1) / math.sqrt(len(pairs))
    return float(by_draw.mean()), float(error)


def _log2_binomial(n: int, k: int) -> float:
    nats = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return nats / math.log(2)
