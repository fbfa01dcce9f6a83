"""The quantiles of a mixture of likelihoods.

`outputs` is [rows, S, ..., P] throughout: the network's outputs for each row and draw.
Everything is computed in float64.
"""

from collections.abc import Callable

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.inversion import bracket_of_counts, inverted, least_integer
from tfbbb.prediction.draw_weights import average_over_draws

# 32 MB of float64: components of a mixture times levels, in one block of rows.
_MOST_COMPONENTS = 1 << 22
# Number of terms that the distribution function of counts adds up at a time.
_TERMS_OF_COUNTS = 11


def quantiles(likelihood: Likelihood, levels: ArrayLike, outputs: Tensor) -> tf.Tensor:
    """Inverts the mixture's distribution function, target by target: [rows, Q, ..., k].

    Of integers it is the least whose distribution function reaches the level, found by
    bisection. Of real targets, a mixture's quantile lies between the least and the
    greatest of its components' quantiles, where Newton's method and bisection find it.
    Their levels are [Q], or [rows, Q, ..., k], of each row and target its own.
    """
    levels, outputs = tf.cast(levels, tf.float64), tf.convert_to_tensor(outputs)
    shape = tf.shape(outputs)
    by_row = len(levels.shape) > 1
    num_levels = tf.shape(levels, tf.int64)[1 if by_row else 0]
    per_row = num_levels * tf.reduce_prod(tf.cast(shape[1:], tf.int64))
    if likelihood.discrete:
        invert, per_row = _invert_steps, _TERMS_OF_COUNTS * per_row
    else:
        invert = _invert
    rows = tf.cast(tf.maximum(_MOST_COMPONENTS // per_row, 1), tf.int32)

    num_blocks = -(-shape[0] // rows)

    def of_block(
        index: tf.Tensor, found: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.TensorArray]:
        part = slice(index * rows, (index + 1) * rows)
        values = invert(likelihood, levels[part] if by_row else levels, outputs[part])
        return index + 1, found.write(index, values)

    one_row = tf.zeros([1, *outputs.shape[2:]], tf.float64)
    # Neither mean nor outputs have the shape of ordered classes themselves.
    event_shape = likelihood.cdf(0.0, one_row).shape[1:]
    empty = tf.TensorArray(
        tf.float64,
        size=num_blocks,
        infer_shape=False,
        element_shape=[None, None, *event_shape],
    )
    _, found = tf.while_loop(
        lambda index, _: index < num_blocks,
        of_block,
        (tf.constant(0), empty),
        parallel_iterations=1,
    )
    return found.concat()


def _invert_steps(
    likelihood: Likelihood, levels: tf.Tensor, outputs: Tensor
) -> tf.Tensor:
    outputs = tf.cast(outputs, tf.float64)[:, tf.newaxis]
    # [Q] -> [Q, 1, ..., 1] over places and targets.
    shape = tf.concat([tf.shape(levels), tf.ones([tf.rank(outputs) - 3], tf.int32)], 0)
    wanted = tf.reshape(levels, shape)

    def reaches(values: tf.Tensor) -> tf.Tensor:
        per_sample = likelihood.cdf(values[:, :, tf.newaxis], outputs)
        return average_over_draws(likelihood, per_sample, axis=2) >= wanted

    if likelihood.task == "classification":
        one = tf.ones_like(likelihood.cdf(0.0, outputs)[:, :, 0] + wanted)
        return least_integer(reaches, -one, (likelihood.num_classes - 1.0) * one)
    means, variances = likelihood.mean(outputs), likelihood.variance(outputs)
    mean = average_over_draws(likelihood, means, axis=2)
    squares = variances + tf.square(means - mean[:, :, tf.newaxis])
    variance = average_over_draws(likelihood, squares, axis=2)
    return least_integer(reaches, *bracket_of_counts(wanted, mean, variance))


def _invert(likelihood: Likelihood, levels: tf.Tensor, outputs: Tensor) -> tf.Tensor:
    outputs = tf.cast(outputs, tf.float64)[:, tf.newaxis]
    if len(levels.shape) == 1:
        # [Q] -> [1, Q, 1, ..., 1] over rows, places and targets.
        levels = tf.reshape(levels, [1, -1, *[1] * (len(outputs.shape) - 3)])

    def average(compute: Callable[..., tf.Tensor]) -> Callable[[tf.Tensor], tf.Tensor]:
        return lambda values: average_over_draws(
            likelihood, compute(values[:, :, tf.newaxis], outputs), axis=2
        )

    return inverted(
        average(likelihood.cdf),
        average(likelihood.prob),
        levels,
        *_bracket(likelihood, levels, outputs),
    )


def _bracket(
    likelihood: Likelihood, levels: tf.Tensor, outputs: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Returns bounds of the mixture's quantiles, [rows, Q, ..., k] each.

    If the quantiles of components take long, the bounds are those of any distribution
    with this mean and variance (Cantelli 1928), and the quantiles of the normal
    distribution with these are a start.
    """
    if not likelihood.slow_quantiles:
        per_component = likelihood.quantile(levels[:, :, tf.newaxis], outputs)
        return tf.reduce_min(per_component, axis=2), tf.reduce_max(
            per_component, axis=2
        )
    means, variances = likelihood.mean(outputs), likelihood.variance(outputs)
    mean = average_over_draws(likelihood, means, axis=2)
    squares = variances + tf.square(means - mean[:, :, tf.newaxis])
    stddev = tf.sqrt(average_over_draws(likelihood, squares, axis=2))
    odds = levels / (1.0 - levels)
    # Rounding must not move a bound beyond the quantile.
    below, above = stddev / tf.sqrt(odds), stddev * tf.sqrt(odds)
    start = mean + stddev * tf.math.ndtri(levels)
    return mean - 1.001 * below, mean + 1.001 * above, start
