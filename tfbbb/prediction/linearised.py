"""Draws of a network that is linear in its weights around their means."""

from typing import Any

import keras
import tensorflow as tf

from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.engine import Engine
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import Structure
from tfbbb.types import Tensor


def weight_means(structure: Structure) -> Tensors:
    """Returns the means of all weights, by layer and by name."""
    return {
        info.key: {
            weight.name: tf.cast(weight.mean, info.layer.compute_dtype)
            for weight in info.layer.variational_weights
        }
        for info in structure.layer_infos
    }


def linearised_outputs(
    model: keras.Model,
    structure: Structure,
    inputs: Tensor,
    means: Tensors,
    draws: Tensors,
    count: int | Tensor,
) -> list[tf.Tensor]:
    """Returns `f(x, m) + J (w - m)` of S draws w with the mean m, [S, rows, ...].

    J is the Jacobian of the outputs in the weights at m; J times a vector is computed
    forwards, in the pass that computes f. The outputs of a normal posterior are normal
    with the covariance `J Cov(w) J^T` (Immer et al. 2021, equation 8).

    Args:
        model: The model.
        structure: Its structure.
        inputs: Inputs of the rows.
        means: The result of `weight_means`.
        draws: Draws of all weights, as `draw` returns them.
        count: Number of draws S.
    """
    points: list[Any] = []
    deviations: list[Any] = []
    at_means: dict[str, dict[str, Any]] = {}
    for info in structure.layer_infos:
        at_means[info.key] = {}
        for name, drawn in draws[info.key].items():
            mean = means[info.key][name]
            # Draws are in the order of the members.
            mean = mean if structure.members > 1 else mean[tf.newaxis]
            copies = tf.repeat(mean, tf.shape(drawn)[0] // structure.members, axis=0)
            points.append(copies)
            deviations.append(drawn - copies)
            at_means[info.key][name] = copies
    with tf.autodiff.ForwardAccumulator(points, deviations) as forwards:
        engine = Engine(model, structure, Plan(), {}, at_means, count)
        outputs, _ = engine.run(inputs)
    zero = tf.UnconnectedGradients.ZERO
    return [
        output + forwards.jvp(output, unconnected_gradients=zero) for output in outputs
    ]
