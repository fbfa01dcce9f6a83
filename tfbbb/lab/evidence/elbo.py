"""The evidence lower bound of a trained model on all rows."""

import math

from tfbbb.base.types import ArrayLike
from tfbbb.lab.evidence.description_length import description_length
from tfbbb.lab.evidence.estimate import EvidenceEstimate
from tfbbb.model.bayesian_model import BayesianModel


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
