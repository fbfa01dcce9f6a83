"""Draws of a network that is linear in its weights around their means."""

import itertools
from collections.abc import Callable

import keras
import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.network_pass import NetworkPass
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.structure import Structure

_CONTROL_FLOW = {
    f"{prefix}{name}"
    for prefix in ("", "Stateless")
    for name in ("While", "If", "Case")
}


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

    J is the Jacobian of the outputs in the weights at m. J times a vector is computed
    forwards, in the pass that computes f; if the network has loops, which TensorFlow
    cannot differentiate forwards, it is the derivative of the linear function
    u -> u^T J, which is computed backwards twice. The outputs of a normal posterior are
    normal with the covariance `J Cov(w) J^T` (Immer et al. 2021, equation 8).
    """
    points: list[tf.Tensor] = []
    deviations: list[tf.Tensor] = []
    at_means: Tensors = {"source": draws["source"]}
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

    def run(uses_channels: bool = True) -> list[tf.Tensor]:
        network_pass = NetworkPass(
            model, structure, Plan(), {}, at_means, count, uses_channels
        )
        return network_pass.run(inputs)[0]

    zero = tf.UnconnectedGradients.ZERO
    if _has_loops(run):
        with tf.GradientTape() as backwards:
            backwards.watch(points)
            outputs = run(uses_channels=False)
        with tf.GradientTape() as twice:
            directions = [tf.zeros_like(output) for output in outputs]
            twice.watch(directions)
            products = backwards.gradient(outputs, points, directions, zero)
        changes = twice.gradient(products, directions, deviations, zero)
    else:
        with tf.autodiff.ForwardAccumulator(points, deviations) as forwards:
            outputs = run()
        changes = [forwards.jvp(output, zero) for output in outputs]
    return [output + change for output, change in zip(outputs, changes, strict=True)]


def _has_loops(function: Callable[[], list[tf.Tensor]]) -> bool:
    """Whether the graph of a function has loops, branches or lists of tensors."""
    traced = tf.function(function, autograph=False).get_concrete_function()
    graph = traced.graph.as_graph_def()
    called = (definition.node_def for definition in graph.library.function)
    return any(
        node.op in _CONTROL_FLOW or node.op.startswith("TensorList")
        for node in itertools.chain(graph.node, *called)
    )
