"""The moments of a prediction as tensors, with gradients by the inputs."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base.numbers import int32
from tfbbb.base.private_apis import graph_of
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import summary_outputs
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.inputs import flat_inputs
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.plan import check_method, own_method, plan_for
from tfbbb.prediction.posterior_predictive import match_likelihoods
from tfbbb.prediction.program import Program
from tfbbb.prediction.recalibration.recalibration import IDENTITY
from tfbbb.prediction.structure import Structure


def predictive_tensors(
    model: keras.Model,
    x: ArrayLike,
    *,
    likelihood: str | Mapping[str, Any] | Likelihood | None = None,
    num_samples: int = 100,
    method: str = "auto",
    seed: int = 0,
) -> Any:
    """Computes the moments of the posterior predictive as tensors of TensorFlow.

    Those of `tfbbb.predictive` with the same draws, which do not depend on the inputs:
    each moment is a smooth function of `x`, as the network is. A `tf.GradientTape` has
    its derivatives, for saliency, SHAP's gradient explainers and Bayesian optimisation;
    a `tf.function` may call it.

    Example: where the prediction rises fastest, and where it is least known.

    >>> import keras, tensorflow as tf, tfbbb
    >>> inputs = keras.Input((3,))
    >>> hidden = tfbbb.layers.DenseVariational(8, "tanh")(inputs)
    >>> model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    >>> x = tf.Variable([[1.0, 2.0, 3.0]])
    >>> with tf.GradientTape(persistent=True) as tape:
    ...     found = tfbbb.predictive_tensors(model, x)
    >>> tape.gradient(found["mean"], x).shape
    TensorShape([1, 3])
    >>> tape.gradient(found["epistemic"], x).shape
    TensorShape([1, 3])

    Args:
        model: A built Keras model: see `tfbbb.predictive`.
        x: Tensors of the rows, in the structure of the model's inputs, or by name.
        likelihood: p(y | f), unless it is the model's: see `tfbbb.predictive`.
        num_samples: Number S of draws. All pass through the network at once.
        method: `"local"`, `"weight"` or `"linearised"`, as for `tfbbb.predictive`;
            `"auto"` is `"linearised"` for a Laplace approximation, else `"local"`.
        seed: Seed of the draws.

    Returns:
        A dictionary of float64 tensors: `mean`, `variance`, `epistemic` and `aleatoric`
        [rows, ..., k]; for classes `probabilities` [rows, ..., c], `entropy` and
        `mutual_information`. Of several outputs, a list or dictionary of them.

    Raises:
        ValueError: For an unknown method, a missing likelihood, or a model whose
            answers are changed after the network, by a recalibration of the
            distribution function or an extrapolation.
    """
    check_method(method)
    graph = graph_of(model)
    if graph is None:
        inputs = tree.map_structure(tf.convert_to_tensor, x)
    else:
        given = zip(flat_inputs(graph, x), graph.inputs, strict=True)
        flat = [_converted(value, reference.dtype) for value, reference in given]
        inputs = tree.pack_sequence_as(graph.input, flat)
    structure = Structure.of(model)
    if method == "auto":
        method = "linearised" if own_method(model) == "linearised" else "local"
    form, found = match_likelihoods(model, likelihood, inputs)
    recalibration = IDENTITY
    if form is getattr(model, "likelihood", None):
        recalibration = getattr(model, "recalibration", None) or IDENTITY
        if getattr(model, "extrapolation", None) is not None:
            raise ValueError(
                "The widening outside the training rows has no derivatives. Set "
                "`model.extrapolation = None`, and use the model's own moments. "
                f"Received: extrapolation={model.extrapolation!r}"
            )
    answers = [live_answers(each, recalibration) for each in found]
    if any(each.summary is not None for each in answers):
        raise ValueError(
            "The moments of this recalibration are found from quantiles, which have no "
            "derivatives. Recalibrate by 'temperature' or 'variance_scaling', or set "
            f"`model.recalibration = None`. Received: recalibration={recalibration!r}"
        )
    plan = plan_for(structure, method, 1, num_samples, MAX_FLOATS, found)
    program = Program.of(model, found, plan, inputs, recalibration)
    rounds = program.sizes.num_rounds(int32("num_samples", num_samples, least=2))
    draws = program.draws(tf.constant([0, int32("seed", seed)]), 0, rounds)
    summaries, _ = program.answer(inputs, program.moments(), draws)
    moments = [
        {name: summary[name] for name in summary_outputs(each, summary)}
        for each, summary in zip(answers, summaries, strict=True)
    ]
    return tree.pack_sequence_as(form, moments)


def _converted(value: ArrayLike, dtype: str) -> Tensor:
    tensor = tf.convert_to_tensor(value)
    return tensor if tensor.dtype == dtype else tf.cast(tensor, dtype)
