"""The loss of a linear last layer in closed form, without draws."""

from __future__ import annotations

from tfbbb.base.call_context import current_call
from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.estimators.estimator import Estimator, LinearLayer, register
from tfbbb.bayes.estimators.weight import Weight
from tfbbb.bayes.posteriors.posterior import NormalPosterior, Posterior


@register("closed_form")
class ClosedForm(Estimator):
    """Takes the expected loss over a linear last layer (Harrison et al. 2024).

    Given its inputs x, the outputs f of a dense layer without an activation are normal
    under q, and a `tfbbb.BayesianModel` has the expectation over them in its loss:

        E_q[-log p(y | f)],   f_u ~ N(x . mean_u + mean_b, Var[x . w_u] + Var[b_u])

    For `Normal` with one noise for all rows that is

        -log p(y | E[f]) + Var[f] / (2 scale^2),

    and has the gradient of other estimators without their noise. Other likelihoods
    raise an error. It needs no independent weights. Metrics of training see a draw of
    the outputs.

    Example:

    >>> import keras, tfbbb
    >>> features = keras.Input((3,))
    >>> layer = tfbbb.layers.DenseVariational(
    ...     1, posterior="full_covariance_normal", estimator="closed_form"
    ... )
    >>> model = tfbbb.BayesianModel(features, layer(features), likelihood="normal")
    """

    def can_serve(self, posterior: Posterior) -> bool:
        return posterior.factorised or (
            isinstance(posterior, NormalPosterior) and posterior.has_density
        )

    def __call__(
        self, layer: LinearLayer, inputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if current_call().samples_in_batch is not None:
            layer.keep_for_loss(*output_moments(layer, inputs))
        # Without metrics no step needs the draw, and TensorFlow leaves it out.
        return Weight()(layer, inputs)


def output_moments(layer: LinearLayer, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Returns mean and variance of a dense layer's outputs under q, in float32."""
    leading = [] if layer.members == 1 else [layer.members]
    rows = tf.reshape(tf.cast(inputs, "float32"), [*leading, -1, inputs.shape[-1]])
    mean = tf.matmul(rows, layer.kernel.mean)
    variance = layer.kernel.output_variance(rows)
    if layer.bias is not None:
        mean += tf.expand_dims(layer.bias.mean, -2)
        variance += tf.expand_dims(layer.bias.variance, -2)
    units = mean.shape[-1]
    shape = tf.concat([tf.shape(inputs)[:-1], [units]], axis=0)
    static = [*inputs.shape[:-1], units]
    mean, variance = (
        tf.ensure_shape(tf.reshape(moment, shape), static)
        for moment in (mean, variance)
    )
    return mean, variance
