"""The Poisson likelihood."""

from __future__ import annotations

from typing import Any

from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.counts import Counts
from tfbbb.bayes.likelihoods.likelihood import register
from tfbbb.bayes.likelihoods.standardized_targets import Standardize


@register("poisson", "A count whose variance is its mean.")
class Poisson(Counts):
    """Counts of events that happen independently of each other.

        p(y | f) = rate^y exp(-rate) / y!,  log rate = log(average) + f

    with mean and variance `rate`. The network gives one output f per target; `average`
    is the mean of the training targets, set by the first `fit` of a
    `tfbbb.BayesianModel`, and 1 until then. If the variance exceeds the mean, use
    `NegativeBinomial`.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Poisson()
    >>> likelihood.build((None, 1))
    >>> likelihood.adapt([0, 1, 2, 5])
    >>> likelihood.mean([[0.0]]).numpy().tolist()
    [[2.0]]
    >>> likelihood.quantile(0.9, [[0.0]]).numpy().tolist()
    [[4.0]]

    Args:
        standardize: Whether the network gives the log of the rate relative to
            `average`; else it gives the log of the rate itself.
    """

    def __init__(self, standardize: Standardize = True, **kwargs: Any):
        super().__init__(standardize=standardize, **kwargs)

    def _noise_sizes(self, num_targets: int) -> dict[str, int]:
        return {}

    def _concentration(self, raw: dict[str, tf.Tensor], log_mean: tf.Tensor) -> None:
        return None

    def parameters(self, outputs: Tensor) -> dict[str, tf.Tensor]:
        return {"rate": self.mean(outputs)}
