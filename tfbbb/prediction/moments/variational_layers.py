"""Layers whose weights have a posterior."""

import tensorflow as tf

from tfbbb.base.batch_layout import merge_leading, split_leading
from tfbbb.base.types import Tensor
from tfbbb.bayes.posteriors import NormalPosterior, TFPDistribution
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers import EmbeddingVariational, SeparableConv2DVariational
from tfbbb.layers.linear_variational import LinearVariationalLayer
from tfbbb.prediction.moments.activations import activated
from tfbbb.prediction.moments.linear import require_independence
from tfbbb.prediction.moments.marginals import Marginals, MeanAndVariance
from tfbbb.prediction.moments.registry import Call, register_moments

OWN_WEIGHTS = "Its inputs depend on its own weights, and are taken as independent."


@register_moments(LinearVariationalLayer)
def linear_variational(call: Call) -> Marginals:
    """A layer `activation(linear(x, w) + b)`.

    With the mean M and the variance V of w, for inputs of mean m and variance v,

        E = linear(m, M) + E[b]
        Var = linear(m^2 + v, V) + linear(v, M^2) + Var[b]

    which is exact for inputs that are independent of each other and of w, and for
    weights that are independent of each other.
    """
    layer = call.operation
    return activated(call, layer.activation, _pre_activations(call, layer, call.inputs))


@register_moments(EmbeddingVariational)
def embedding(call: Call) -> Marginals:
    """Vectors of a table: their entries' own means and variances."""
    if call.operation.mask_zero:
        call.refuse("it makes a mask")
    return linear_variational(call)


@register_moments(SeparableConv2DVariational)
def separable(call: Call) -> Marginals:
    """A depthwise convolution, then a pointwise one."""
    depthwise, pointwise = call.operation.depthwise, call.operation.pointwise
    inputs = call.inputs
    between = _pre_activations(call, depthwise, inputs)
    if depthwise.depth_multiplier == 1 or not isinstance(inputs, Marginals):
        # The pointwise one sums over channels, which have neither weights nor inputs
        # in common; positions have.
        between = between.replace(independent=True)
    outputs = _pre_activations(call, pointwise, between)
    return activated(call, pointwise.activation, outputs)


def _pre_activations(
    call: Call, layer: LinearVariationalLayer, inputs: Tensor
) -> Marginals:
    kernel, bias = layer.kernel, layer.bias
    sums = not isinstance(layer, EmbeddingVariational)
    if sums and not _has_independent_weights(kernel):
        call.refuse(
            f"the weights of a unit depend on each other under {kernel.posterior!r}, "
            "and their covariances would count in the variance of their sum"
        )
    if isinstance(inputs, Marginals):
        mean, variance = _of_uncertain(call, layer, inputs)
        sources = inputs.sources
    else:
        mean, variance = _of_certain(call, layer, inputs)
        sources = frozenset()
    if bias is not None:
        rank = len(mean.shape)
        mean += layer.broadcast_bias(_mean(call, bias), rank)
        variance += layer.broadcast_bias(_variance(call, layer, bias), rank)
    if layer.members > 1:
        mean, variance = merge_leading(mean), merge_leading(variance)
    posteriors = [weight.posterior for weight in layer.variational_weights]
    certain = not isinstance(inputs, Marginals)
    return Marginals(
        mean,
        variance,
        sources | {id(layer)},
        independent=certain
        and layer.is_local_exact(len(inputs.shape), calls=1)
        and all(map(_has_independent_weights, layer.variational_weights)),
        normal=certain
        and all(
            posterior.factorised or isinstance(posterior, NormalPosterior)
            for posterior in posteriors
        ),
    )


def _of_certain(
    call: Call, layer: LinearVariationalLayer, inputs: Tensor
) -> MeanAndVariance:
    if isinstance(layer, EmbeddingVariational):
        inputs = layer.cast_inputs(inputs)
    else:
        inputs = tf.cast(inputs, tf.float32)
    if layer.members > 1:
        # One batch for the kernels of all members.
        inputs = inputs[tf.newaxis]
    mean = layer.linear(inputs, _mean(call, layer.kernel))
    if layer.kernel.posterior.deterministic:
        return mean, tf.zeros_like(mean)
    variance = _variance(call, layer, layer.kernel)
    return mean, layer.linear_in_squares(inputs, variance)


def _of_uncertain(
    call: Call, layer: LinearVariationalLayer, inputs: Marginals
) -> MeanAndVariance:
    if isinstance(layer, EmbeddingVariational):
        call.refuse("its indices are random")
    require_independence(call, inputs)
    if id(layer) in inputs.sources:
        call.approximate(OWN_WEIGHTS)
    m, v, kernel = inputs.mean, inputs.variance, layer.kernel
    if layer.members > 1:
        m, v = split_leading(m, layer.members), split_leading(v, layer.members)
    mean = layer.linear(m, _mean(call, kernel))
    square = call.of_weights("kernel_square", lambda: tf.square(kernel.mean), layer)
    variance = layer.linear(v, square)
    if not kernel.posterior.deterministic:
        # Two products are faster than one of twice the depth, which copies its factors.
        variance += layer.linear(tf.square(m) + v, _variance(call, layer, kernel))
    return mean, variance


def _has_independent_weights(weight: VariationalWeight) -> bool:
    posterior = weight.posterior
    if isinstance(posterior, TFPDistribution):
        # Elements of a batch are independent, elements of an event may not be.
        return posterior.distribution(weight.parameters).event_shape.rank == 0
    return posterior.factorised


def _mean(call: Call, weight: VariationalWeight) -> Tensor:
    try:
        return weight.mean
    except ValueError as error:
        call.refuse(f"the mean of its {weight.name} is not known: {error}")


def _variance(
    call: Call, layer: LinearVariationalLayer, weight: VariationalWeight
) -> Tensor:
    try:
        return call.of_weights(
            f"{weight.name}_variance", lambda: weight.variance, layer
        )
    except ValueError as error:
        call.refuse(f"the variance of its {weight.name} is not known: {error}")
