"""Moments and information of a mixture of likelihoods, one per posterior draw.

Sums are taken in float64 about the mean, block of draws by block of draws (Chan, Golub
and LeVeque 1983), so that nothing is lost by a small variance beside a large mean.
"""

from collections.abc import Sequence

import tensorflow as tf

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.draw_weights import weighted_sum

Sums = dict[str, tf.Tensor]

# Sums that are added over blocks as they are.
_PLAIN_SUMS = ("draws", "noise_variance", "location_variance", "entropies")


def sums(likelihood: Likelihood, outputs: Tensor, members: int) -> Sums:
    """Returns the sums behind moments and information, for one block of draws.

    The outputs [rows, S, ..., P] are by round, by sign, by member: the two draws of a
    round and member are each other's mirror image. The sums are the number of `draws`
    of a member; by member [rows, K, ..., k] the `mean`, the sum of squared deviations
    from it of all draws (`squares`) and of the averages of the rounds
    (`squares_of_rounds`), and sums over draws of the noise's variance, of the variance
    of the mean where it was integrated, and, for classes, of entropies [rows, K, ...].
    """
    is_classes = likelihood.task == "classification"
    if not is_classes:
        # Targets may be far from zero, and their scale small beside it.
        outputs = tf.cast(outputs, tf.float64)
    # Probabilities are sums of nothing yet: single precision has the digits they need,
    # in a third of the time.
    means = likelihood.mean(outputs)
    variances = means * (1.0 - means) if is_classes else likelihood.variance(outputs)
    rows, _, *event = dimensions(means, 0)
    # [rows, R, 2, K, ..., k]
    draws = tf.reshape(means, [rows, -1, 2, members, *event])
    draws = tf.cast(draws, tf.float64)
    rounds = tf.reduce_mean(draws, axis=2)
    mean = tf.reduce_mean(rounds, axis=1)
    deviations = draws - mean[:, tf.newaxis, tf.newaxis]
    found = {
        "draws": tf.cast(2 * tf.shape(rounds)[1], tf.float64),
        "mean": mean,
        "squares": tf.reduce_sum(tf.square(deviations), axis=[1, 2]),
        "squares_of_rounds": tf.reduce_sum(
            tf.square(rounds - mean[:, tf.newaxis]), axis=1
        ),
        "noise_variance": _sum_over_draws(variances, members),
    }
    if likelihood.integrates_location:
        found["location_variance"] = _sum_over_draws(
            likelihood.location_variance(outputs), members
        )
    if is_classes:
        found["entropies"] = _sum_over_draws(_entropy(means), members)
    return found


def _sum_over_draws(values: tf.Tensor, members: int) -> tf.Tensor:
    """Returns sums by member of values [rows, S, ...], [rows, K, ...]."""
    values = tf.cast(values, tf.float64)
    if members == 1:
        return tf.reduce_sum(values, axis=1, keepdims=True)
    rows, _, *event = dimensions(values, 0)
    by_member = tf.reshape(values, [rows, -1, members, *event])
    return tf.reduce_sum(by_member, axis=1)


def merged(one: Sums, other: Sums) -> Sums:
    """Returns the sums of two blocks of draws of the same rows together."""
    n, m = one["draws"], other["draws"]
    distance = other["mean"] - one["mean"]
    spread = tf.square(distance) * (n * m / (n + m))
    both = {name: one[name] + other[name] for name in _PLAIN_SUMS if name in one}
    return both | {
        "mean": one["mean"] + distance * (m / (n + m)),
        "squares": one["squares"] + other["squares"] + spread,
        # A round is the average of two draws, so there are half as many of them.
        "squares_of_rounds": one["squares_of_rounds"]
        + other["squares_of_rounds"]
        + 0.5 * spread,
    }


def summary(
    found: Sums, weights: Sequence[float] | None = None
) -> dict[str, tf.Tensor]:
    """Decomposes the predictive variance by the law of total variance.

    `Var[y] = Var_w[E[y | w]] + E_w[Var[y | w]]`: epistemic, which more data would
    lower, plus aleatoric, which it would not. The standard error of the mean comes from
    the averages of the rounds, which are independent of each other, in each member:
    `se^2 = sum_k v_k^2 s_k^2 / R`, where v_k is 1/K or the weight of the member. Since
    `E[mean^2] = E[y]^2 + se^2`, the variance of the draws is less than the epistemic
    variance by `se^2`, on average.

    Members are parts of the mixture, of equal or of given weights: the variance between
    their means is epistemic, after the expected contribution of chance is subtracted.

    It returns `mean`, `variance`, `epistemic`, `aleatoric`, `mean_standard_error` and,
    of several members, `between_members`, each [rows, ..., k]; for classes also
    `probabilities` [rows, ..., C], and `entropy` and `mutual_information` [rows, ...]
    in nats, `H[E_w p] = E_w H[p] + I(y; w)`. All in float64.
    """
    member_means, draws = found["mean"], found["draws"]
    members = member_means.shape[1]

    def over_members(values: tf.Tensor) -> tf.Tensor:
        if weights is None:
            return tf.reduce_mean(values, axis=1)
        return weighted_sum(values, weights, axis=1)

    rounds = 0.5 * draws
    mean = over_members(member_means)
    squared_errors = found["squares_of_rounds"] / (rounds * (rounds - 1.0))
    expected_squared_error = over_members(squared_errors)
    if weights is None:
        squared_error = expected_squared_error / members
    else:
        squares = [weight**2 for weight in weights]
        squared_error = weighted_sum(squared_errors, squares, axis=1)
    between = over_members(tf.square(member_means - mean[:, tf.newaxis]))
    within = over_members(found["squares"]) / draws
    epistemic = within + between + squared_error
    if "location_variance" in found:
        epistemic += over_members(found["location_variance"]) / draws
    aleatoric = over_members(found["noise_variance"]) / draws
    result = {
        "mean": mean,
        "variance": epistemic + aleatoric,
        "epistemic": epistemic,
        "aleatoric": aleatoric,
        "mean_standard_error": tf.sqrt(squared_error),
    }
    if members > 1:
        by_chance = expected_squared_error - squared_error
        result["between_members"] = tf.maximum(between - by_chance, 0.0)
    if "entropies" in found:
        entropy = _entropy(mean)
        expected = over_members(found["entropies"]) / draws
        result |= {
            "probabilities": mean,
            "entropy": entropy,
            # Not negative by Jensen's inequality; rounding could make it so.
            "mutual_information": tf.maximum(entropy - expected, 0.0),
        }
    return result


def _entropy(probabilities: tf.Tensor) -> tf.Tensor:
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)
