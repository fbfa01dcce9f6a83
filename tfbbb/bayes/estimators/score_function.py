"""The score-function estimator, for draws without a gradient."""

from __future__ import annotations

from collections.abc import Sequence

from tfbbb.base.call_context import current_call
from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.divergences import is_log_ratio
from tfbbb.bayes.estimators.drawn_kernel import DrawnKernel
from tfbbb.bayes.estimators.estimator import (
    EstimatedLayer,
    Estimator,
    LinearLayer,
    TwoSamples,
    register,
    validate_num_samples,
)
from tfbbb.bayes.estimators.weight import drawn_weights, grouped_kernels, with_weights
from tfbbb.bayes.posteriors.posterior import Posterior


@register(
    "score_function", "Needs no gradient of the draws, but has a much larger variance."
)
class ScoreFunction(Estimator):
    """Weights each draw's score by its loss (Williams 1992; Ranganath et al. 2014).

    `grad E_q[L(w)] = E_q[(L(w) - b) grad log q(w)]`

    With K draws `w_k`, the control variate `b` of each is the mean loss of the others
    (leave-one-out: Mnih and Rezende 2016; Kool et al. 2019), which leaves the gradient
    unbiased. The estimator needs no gradient of the loss with respect to the weights,
    so it suits posteriors that no other estimator can train; its variance is far larger
    than for other estimators. It works only in a `tfbbb.BayesianModel`, which computes
    the loss of each draw.

    Example:

    >>> import tfbbb
    >>> estimator = tfbbb.estimators.ScoreFunction(num_samples=8)
    >>> layer = tfbbb.layers.DenseVariational(4, estimator=estimator)

    Args:
        num_samples: Number K of draws in a training step, at least 2.
    """

    def __init__(self, num_samples: TwoSamples = 2):
        self.num_samples = validate_num_samples(num_samples, at_least=2)

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.has_density

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        draws = scored_weights(layer)
        return with_weights(layer, inputs, draws), draws

    def draw_kernels(
        self, layer: EstimatedLayer, rows: int | Tensor
    ) -> tuple[dict[str, DrawnKernel], dict[str, Tensor]]:
        draws = scored_weights(layer)
        return grouped_kernels(layer, draws, layer.batch_layout()), draws


def scored_weights(layer: EstimatedLayer) -> dict[str, Tensor]:
    """Returns this step's draws, without gradient; the layer has them for the score."""
    if current_call().samples_in_batch is None:
        raise ValueError(
            "The estimator 'score_function' needs the loss of each draw, which only "
            "`tfbbb.BayesianModel` computes. Use the layer in a `BayesianModel`, or "
            f"use another estimator. Received: a call of '{layer.name}' outside of one"
        )
    draws = {k: tf.stop_gradient(v) for k, v in drawn_weights(layer).items()}
    layer.keep_for_score(draws)
    return draws


def scores_of(layers: Sequence[EstimatedLayer]) -> tuple[Tensor, Tensor] | None:
    """Returns log q of this step's draws, and the loss that depends on them."""
    scored = [
        _layer_score(layer, layer.step_draws)
        for layer in layers
        if layer.step_draws is not None
    ]
    if not scored:
        return None
    log_probs, depending = zip(*scored, strict=True)
    return sum(log_probs), sum(depending)


def score_function_term(losses: Tensor, log_prob: Tensor, num_samples: int) -> Tensor:
    """Returns 0, with the gradient of the expected loss in the parameters of q.

    The control variate of a draw, [members * samples], is the mean of the others.
    """
    by_member = tf.reshape(tf.stop_gradient(losses), [-1, num_samples])
    mean = tf.reduce_mean(by_member, axis=1, keepdims=True)
    advantage = (by_member - mean) * (num_samples / (num_samples - 1))
    term = tf.reduce_mean(tf.reshape(advantage, [-1]) * log_prob)
    return term - tf.stop_gradient(term)


def _layer_score(
    layer: EstimatedLayer, draws: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Returns log q of the draws, and the loss that depends on them, without gradient.

    Both are [members * samples]. The second is `kl_weight * (log q - log p)` of the
    weights whose divergence is estimated by this difference.
    """
    log_prob, depending = 0.0, 0.0
    for weight in layer.variational_weights:
        drawn = draws[weight.name]
        log_q = weight.log_prob(drawn)
        log_prob += log_q
        if is_log_ratio(weight):
            log_ratio = log_q - weight.prior_log_prob(drawn)
            depending += layer.by_member_factor(log_ratio)
    return log_prob, tf.stop_gradient(tf.convert_to_tensor(layer.kl_weight) * depending)
