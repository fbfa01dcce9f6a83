"""Moments and information of a mixture of likelihoods, one per posterior draw."""

from __future__ import annotations

from tfbbb.base import array_ops as ops
from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.draw_weights import average_over_draws, weighted_sum


def summary(
    likelihood: Likelihood, outputs: Tensor, members: int = 1
) -> dict[str, Tensor]:
    """Decomposes the predictive variance by the law of total variance.

    The outputs [rows, S, ..., P] are by round, by sign, by member: the two draws of a
    round and member are each other's mirror image. `Var[y] = Var_w[E[y | w]] +
    E_w[Var[y | w]]`: epistemic, which more data would lower, plus aleatoric, which it
    would not. The standard error of the mean comes from the averages of the rounds,
    which are independent of each other, in each member: `se^2 = sum_k v_k^2 s_k^2 / R`,
    where v_k is 1/K or the weight of the member. Since `E[mean^2] = E[y]^2 + se^2`, the
    variance of the draws is less than the epistemic variance by `se^2`, on average.

    Members are parts of the mixture, of equal or of given weights: the variance between
    their means is epistemic, after the expected contribution of chance is subtracted.

    It returns `mean`, `variance`, `epistemic`, `aleatoric`, `mean_standard_error` and,
    of several members, `between_members`, each [rows, ..., k]; for classes also
    `probabilities` [rows, ..., C], and `entropy` and `mutual_information` [rows, ...]
    in nats, `H[E_w p] = E_w H[p] + I(y; w)`. All in float64, and squares about the mean
    (Chan, Golub and LeVeque 1983), so that nothing is lost by a small variance beside a
    large mean.
    """
    is_classes = likelihood.task == "classification"
    if not is_classes:
        # Targets may be far from zero, and their scale small beside it.
        outputs = ops.cast(outputs, "float64")
    # Probabilities are sums of nothing yet: single precision has the digits they need,
    # in a third of the time.
    means = likelihood.mean(outputs)
    variances = means * (1.0 - means) if is_classes else likelihood.variance(outputs)
    rows, _, *event = dimensions(means, 0)
    # [rows, R, 2, K, ..., k]
    draws = ops.reshape(means, [rows, -1, 2, members, *event])
    draws = ops.cast(draws, "float64")
    rounds = ops.reduce_mean(draws, axis=2)
    member_means = ops.reduce_mean(rounds, axis=1)
    weights = likelihood.member_weights

    def over_members(values: Tensor) -> Tensor:
        if weights is None:
            return ops.reduce_mean(values, axis=1)
        return weighted_sum(values, weights, axis=1)

    def over_draws(values: Tensor) -> Tensor:
        return average_over_draws(likelihood, ops.cast(values, "float64"), axis=1)

    num_rounds = ops.cast(ops.shape(rounds)[1], "float64")
    deviations = ops.square(rounds - member_means[:, ops.newaxis])
    squared_errors = ops.reduce_mean(deviations, axis=1) / (num_rounds - 1.0)
    expected_squared_error = over_members(squared_errors)
    if weights is None:
        squared_error = expected_squared_error / members
    else:
        squares = [weight**2 for weight in weights]
        squared_error = weighted_sum(squared_errors, squares, axis=1)
    mean = over_members(member_means)
    between = over_members(ops.square(member_means - mean[:, ops.newaxis]))
    deviations = ops.square(draws - member_means[:, ops.newaxis, ops.newaxis])
    within = over_members(ops.reduce_mean(deviations, axis=[1, 2]))
    epistemic = within + between + squared_error
    if likelihood.integrates_location:
        epistemic += over_draws(likelihood.location_variance(outputs))
    aleatoric = over_draws(variances)
    found = {
        "mean": mean,
        "variance": epistemic + aleatoric,
        "epistemic": epistemic,
        "aleatoric": aleatoric,
        "mean_standard_error": ops.sqrt(squared_error),
    }
    if members > 1:
        by_chance = expected_squared_error - squared_error
        found["between_members"] = ops.maximum(between - by_chance, 0.0)
    if is_classes:
        entropy, expected = _entropy(mean), over_draws(_entropy(means))
        found |= {
            "probabilities": mean,
            "entropy": entropy,
            # Not negative by Jensen's inequality; rounding could make it so.
            "mutual_information": ops.maximum(entropy - expected, 0.0),
        }
    return found


def _entropy(probabilities: Tensor) -> Tensor:
    return -ops.reduce_sum(ops.xlogy(probabilities, probabilities), axis=-1)
