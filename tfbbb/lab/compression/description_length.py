"""The minimum description length of a model and its training data, in bits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Identifier, Options, Tensor
from tfbbb.bayes.divergences import closed_form_of, kl_divergence
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.model.compression import ranking as rankings
from tfbbb.model.compression.pruning import (
    Removal,
    Scope,
    copied,
    validate_shares,
    weights_of,
)
from tfbbb.model.compression.ranking import Ranking
from tfbbb.model.compression.removal import is_removed
from tfbbb.model.compression.weightwise_divergence import (
    weightwise_divergence,
    weightwise_estimate,
)
from tfbbb.prediction import Predictive, predictive

_DRAWS = 16


@dataclass(frozen=True)
class DescriptionLength:
    """A description length and its parts, in bits.

    Attributes:
        weight_bits: `KL(q || p) / ln 2` of the kept weights.
        mask_bits: `log2 binomial(num_weights, num_removed)`, the cost of stating which
            weights are removed.
        data_bits: `E_q[-log p(y | x, w)] / ln 2` of all rows.
        data_bits_standard_error: Standard error of `data_bits`, from the draws.
        num_weights: Number of weights of the model, biases included.
        num_removed: Number of removed weights.
    """

    weight_bits: float
    mask_bits: float
    data_bits: float
    data_bits_standard_error: float
    num_weights: int
    num_removed: int

    @property
    def total(self) -> float:
        """The description length in bits."""
        return self.weight_bits + self.mask_bits + self.data_bits

    @property
    def share_removed(self) -> float:
        """The share of removed weights."""
        return self.num_removed / self.num_weights


@dataclass(frozen=True)
class DescriptionLengthCurve:
    """The description length against the share of the weights that were removed.

    Attributes:
        lengths: The description lengths, by ascending share removed.
    """

    lengths: tuple[DescriptionLength, ...]

    @property
    def shares(self) -> np.ndarray:
        """The shares removed, [n]."""
        return np.array([length.share_removed for length in self.lengths])

    @property
    def totals(self) -> np.ndarray:
        """The description lengths in bits, [n]."""
        return np.array([length.total for length in self.lengths])

    @property
    def best(self) -> DescriptionLength:
        """The shortest one: removing more weights costs more bits than it saves."""
        return self.lengths[int(np.argmin(self.totals))]


def description_length(
    model: keras.Model,
    x: ArrayLike,
    y: ArrayLike,
    *,
    likelihood: Identifier | Likelihood | None = None,
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
    >>> model = keras.Sequential([
    ...     keras.Input((1,)),
    ...     tfbbb.layers.DenseVariational(1, kernel_initializer="ones"),
    ... ])
    >>> length = tfbbb.lab.compression.description_length(
    ...     model, [[1.0], [2.0]], [[1.0], [2.0]],
    ...     likelihood=tfbbb.likelihoods.Normal(scale=1.0),
    ... )
    >>> length.weight_bits, length.mask_bits
    (11.73185, 0.0)

    Args:
        model: A built Keras model with variational layers, pruned or not.
        x: Inputs of the training rows.
        y: Targets of these rows, in raw units.
        likelihood: p(y | f), as for `tfbbb.predictive`; not needed for a
            `BayesianModel`.
        num_samples: Number of draws for the expectation under q.
        seed: Seed of the draws.

    Raises:
        ValueError: The model has no variational layers, has several members (a mixture
            has no such code: measure its members) or point posteriors; `num_samples` is
            below two; or a removed weight has a prior that is not independent for each
            weight.
    """
    options = {"likelihood": likelihood, "num_samples": num_samples, "seed": seed}
    return _length(model, x, y, options)


def description_length_curve(
    model: keras.Model,
    x: ArrayLike,
    y: ArrayLike,
    *,
    shares: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98),
    ranking: str | Ranking = "signal_to_noise",
    scope: Scope = "global",
    likelihood: Identifier | Likelihood | None = None,
    num_samples: int = 100,
    seed: int = 0,
) -> DescriptionLengthCurve:
    """Computes the description length for growing shares of removed weights.

    The minimum of the curve shows when to stop pruning, without held-out rows. The
    model itself does not change.

    Args:
        model: As for `description_length`.
        x: As for `description_length`.
        y: As for `description_length`.
        shares: Shares of the weights to remove, from 0 to 1.
        ranking: As for `prune`.
        scope: As for `prune`.
        likelihood: As for `description_length`.
        num_samples: As for `description_length`.
        seed: Seed of the draws, the same at each share.

    Raises:
        ValueError: As `description_length` and `prune`.
    """
    ascending = validate_shares(shares)
    copy = copied(model)
    removal = Removal(copy, rankings.get(ranking), scope)
    options = {"likelihood": likelihood, "num_samples": num_samples, "seed": seed}
    lengths = []
    for share in ascending:
        removal.remove(share)
        lengths.append(_length(copy, x, y, options))
    return DescriptionLengthCurve(lengths=tuple(lengths))


def _length(
    model: keras.Model, x: ArrayLike, y: ArrayLike, options: Options
) -> DescriptionLength:
    weights = [
        (f"{path}/{weight.name}", weight)
        for path, of_layer in weights_of(model).items()
        for weight in of_layer
    ]
    for name, weight in weights:
        if weight.members > 1:
            raise ValueError(
                "The description length is defined for one posterior: measure the "
                "members of a mixture one by one. "
                f"Received: members={weight.members} in {name}"
            )
        if not weight.posterior.has_density:
            raise ValueError(
                "A point posterior costs infinitely many bits: the posterior must have "
                "a density, e.g. 'mean_field_normal'. "
                f"Received: {name} with posterior={weight.posterior!r}"
            )
    num_weights = sum(weight.size for _, weight in weights)
    num_removed = sum(int(is_removed(weight).sum()) for _, weight in weights)
    nats = sum(_kept_divergence(name, weight) for name, weight in weights)
    # `method="weight"` draws all weights; other methods may integrate the last layer.
    bits, error = _data_bits(predictive(model, x, method="weight", **options), y)
    return DescriptionLength(
        weight_bits=nats / math.log(2),
        mask_bits=_log2_binomial(num_weights, num_removed),
        data_bits=bits,
        data_bits_standard_error=error,
        num_weights=num_weights,
        num_removed=num_removed,
    )


def _kept_divergence(name: str, weight: VariationalWeight) -> float:
    """Returns the divergence of the kept weights in nats."""
    removed = is_removed(weight)
    if removed.all():
        return 0.0
    if not removed.any():
        return _total_divergence(weight)
    divergences = weightwise_divergence(weight)
    if divergences is None:
        divergences = weightwise_estimate(weight, _DRAWS)
    if divergences is None:
        raise ValueError(
            "The divergence of the kept weights alone is unknown if the weights depend "
            "on each other under the prior; use an independent prior, e.g. 'normal'. "
            f"Received: {name} with prior={weight.prior!r}"
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
