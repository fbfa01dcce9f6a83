"""The moments of weights, the noise and the drawn weights of a pass.

They depend on no row.

A *round* of draws is two for every member, which are each other's mirror image: their
noise has opposite signs (antithetic variates, Hammersley and Morton 1956). Each draw is
one from the posterior. A quantity that depends nearly linearly on the noise, as the
mean of a wide network does, loses most of its error when the two draws are averaged.
"""

import functools
from collections.abc import Callable, Mapping

import keras
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.batch_layout import merge_leading
from tfbbb.base.types import Shape, Tensor
from tfbbb.bayes.estimators.local import weight_moments
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import LayerInfo, Structure

# The number of noise streams of a layer: its pre-activations, then its weights.
_PLACES = 64
# In place of the index of a layer: the noise that all weights of a draw share.
_ALL_LAYERS = -1

Tensors = dict[str, dict[str, tf.Tensor]]


def local_moments(structure: Structure, plan: Plan) -> Tensors:
    """Returns the moments of the weights whose pre-activations are drawn, by layer."""
    return {
        info.key: weight_moments(info.layer)
        for info in structure.layer_infos
        if plan.is_local(info)
    }


def draw(
    structure: Structure,
    plan: Plan,
    seed: Tensor,
    first: int | Tensor,
    count: int | Tensor,
    moments: Tensors | None = None,
    arrange: bool = True,
) -> Tensors:
    """Returns the noise or the weights of every layer, for `count` rounds.

    They are a function of seed, layer, round, member and sign; for posteriors that
    share noise (`shares_noise`) not of the layer.
    They are by layer `noise` [members * 2R, units], or weights by name, [members * 2R,
    *shape], of R rounds by member, by sign, by round. Independent normal weights are
    drawn from `moments`, if given, which gives the draws of the posterior's own
    variables, up to rounding. `arrange` says whether layers arrange their weights
    (`VariationalLayer.arranged`).
    """
    source = {"seed": seed, "first": first, "count": count}
    drawn: Tensors = {"source": source}
    # Noise that several weights share is drawn once.
    normal = functools.cache(functools.partial(normal_noise, source, structure.members))
    for info in structure.layer_infos:
        if plan.is_local(info):
            layer = info.layer
            shape = layer.compute_output_shape(layer.get_build_config()["input_shape"])
            drawn[info.key] = {"noise": normal(info.index, 0, shape[1:])}
        else:
            known = (moments or {}).get(info.key)
            if not _is_normal(info.layer):
                known = None
            weights = _draw_weights(normal, info, known)
            if arrange:
                weights = info.layer.arranged(weights)
            drawn[info.key] = weights
    return drawn


def _is_normal(layer: keras.Layer) -> bool:
    """Whether a layer's moments give the same draws as its posterior."""
    return layer.compute_dtype == "float32" and all(
        weight.posterior.factorised
        and not weight.posterior.deterministic
        and weight.posterior.noise_shape(weight.shape) == tuple(weight.shape)
        for weight in layer.variational_weights
    )


def _draw_weights(
    normal: Callable[..., tf.Tensor],
    info: LayerInfo,
    moments: dict[str, tf.Tensor] | None,
) -> dict[str, tf.Tensor]:
    """Returns draws of a layer's weights by name, [members * 2R, *shape]."""
    drawn = {}
    for number, weight in enumerate(info.layer.variational_weights, 1):
        shape = weight.posterior.noise_shape(weight.shape)
        if weight.posterior.shares_noise:
            noise = normal(_ALL_LAYERS, 0, shape)
        else:
            noise = normal(info.index, number, shape)
        if moments is None:
            draws = weight.draw_from(noise)
        else:
            prefix = "bias_" if weight.name == "bias" else ""
            mean, variance = moments[f"{prefix}mean"], moments[f"{prefix}variance"]
            if weight.members > 1:
                mean, variance = mean[:, tf.newaxis], variance[:, tf.newaxis]
            draws = mean + tf.sqrt(variance) * noise
            if weight.members > 1:
                draws = merge_leading(draws)
        drawn[weight.name] = tf.cast(draws, info.layer.compute_dtype)
    return drawn


def normal_noise(
    source: Mapping[str, Tensor], members: int, layer: int, number: int, shape: Shape
) -> tf.Tensor:
    """Returns standard normal noise [2R, *shape]; with members [members, 2R, *shape].

    It is a function of seed, layer, round, member and sign. The source has the `seed`,
    int32 [2], the index of the `first` round, and the `count` R of rounds. The number
    is 0 for the layer's pre-activations, then its weights in their order.
    """
    first, count = source["first"], source["count"]
    seed = noise.fold(source["seed"], _PLACES * layer + number)
    block = noise.normal_block(seed, first * members, count * members, shape)
    if members > 1:
        by_round = tf.reshape(block, [count, members, *shape])
        block = tf.transpose(by_round, [1, 0, *range(2, 2 + len(shape))])
    return tf.concat([block, -block], axis=0 if members == 1 else 1)
