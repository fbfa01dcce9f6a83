"""The score-function estimator, for draws without a gradient."""

from __future__ import annotations

from collections.abc import Sequence

from tfbbb.base.call_context import current_call
from tfbbb.base.lazy import tf
from tfbbb.base.numbers import int32
from tfbbb.base.types import Tensor
from tfbbb.bayes.divergences import is_log_ratio
from tfbbb.bayes.estimators.estimator import EstimatedLayer, TwoSamples, register
from tfbbb.bayes.estimators.weight import Weight
from tfbbb.bayes.posteriors.posterior import Posterior


@register(
    "score_function", "Needs no gradient of the draws, but has a much larger variance."
)
class ScoreFunction(Weight):
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
        super().__init__(int32("num_samples", num_samples, least=2))

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.has_density

    def drawn_weights(self, layer: EstimatedLayer) -> dict[str, Tensor]:
        """Returns draws without a gradient, which the layer keeps for the score."""
        if current_call().samples_in_batch is None:
            raise ValueError(
                "The estimator 'score_function' needs the loss of each draw, which "
                "only `tfbbb.BayesianModel` computes. Use the layer in one, or use "
                "another estimator. "
                f"Received: a call of '{layer.name}' outside of one"
            )
        drawn = super().drawn_weights(layer)
        draws = {name: tf.stop_gradient(value) for name, value in drawn.items()}
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
    """Returns 0, with the gradient of the expected loss in the parameters of q."""
    # The control variate of a draw is the mean of the others.
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
