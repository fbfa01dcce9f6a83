"""The signatures of an exported posterior predictive."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import summary_outputs
from tfbbb.prediction.blocks import Sizes
from tfbbb.prediction.compiled import traced
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.questions import quantiles_of
from tfbbb.prediction.recalibration.recalibration import Recalibration

FAMILIARITY = "familiarity"
_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")


def trace_signatures(
    passes: tf.Module,
    sizes: Sizes,
    likelihood: Likelihood,
    recalibration: Recalibration,
    features: Sequence[tf.TensorSpec],
    familiarity: Any,
    num_samples: int,
    seed: int,
    dtype: tf.DType,
) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns the signatures by name: pure functions of rows and arguments.

    `passes` are the functions of one method.
    `familiarity` takes feature tensors, and returns a list of the familiarity of each
    row and of the deviations of an extrapolation, if any. The default signature has its
    own number of samples and seed; answers are of `dtype`.
    """
    names = summary_outputs(passes.answer.structured_outputs["summary"])

    def draw(number: Tensor, seed: Tensor) -> list[Tensor]:
        rounds = sizes.num_rounds(_at_least_two(number), tf.maximum)
        # As in `tfbbb.predictive`: the same seed gives the same draws.
        return passes.draw(tf.stack([0, seed]), tf.constant(0), rounds)

    def compare(
        given: Sequence[Tensor],
    ) -> tuple[list[Tensor], dict[str, tf.Tensor]]:
        if familiarity is None:
            return list(given), {}
        found, *deviations = familiarity(list(given))
        return [*given, *deviations], {FAMILIARITY: found}

    def predict(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *given, number, seed = arguments
        rows, compared = compare(given)
        found = passes.answer(rows, draw(number, seed))
        summary, outputs = found["summary"], found["outputs"]
        mixture = Mixture(likelihood, outputs)
        summary = recalibration.summary(
            summary, lambda levels: quantiles_of(recalibration, mixture, levels)
        )
        answered = {
            name: tf.cast(summary[name], dtype)
            for name in (*names, "mean_standard_error")
        }
        return answered | compared

    def draws(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *given, number, seed = arguments
        rows, _ = compare(given)
        return {"outputs": passes.outputs(rows, draw(number, seed))}

    drawn = [*features, _NUM_SAMPLES, _SEED]
    traced_predict = traced(predict, *drawn)

    def serving_default(*given: Tensor) -> dict[str, tf.Tensor]:
        found = traced_predict(*given, tf.constant(num_samples), tf.constant(seed))
        return {name: x for name, x in found.items() if name != "mean_standard_error"}

    return {
        "serving_default": traced(serving_default, *features),
        "predict": traced_predict,
        "draws": traced(draws, *drawn),
    }


def _at_least_two(num_samples: Tensor) -> tf.Tensor:
    enough = tf.debugging.assert_greater_equal(
        num_samples, 2, "num_samples must be at least 2."
    )
    with tf.control_dependencies([enough]):
        return tf.identity(num_samples)
