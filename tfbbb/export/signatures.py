"""The signatures of an exported posterior predictive."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.export.compared_rows import Compare
from tfbbb.export.sampler import Sampler
from tfbbb.prediction.answers import Answers, summary_outputs
from tfbbb.prediction.compiled import traced

FAMILIARITY = "familiarity"
_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")


def trace_signatures(
    sampler: Sampler,
    answers: Answers,
    quantiles: Callable[[Tensor, Tensor], tf.Tensor] | None,
    features: Sequence[tf.TensorSpec],
    compare: Compare,
    num_samples: int,
    seed: int,
    dtype: tf.DType,
) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns the signatures by name: pure functions, bounded in memory.

    `compare` takes feature tensors and returns what the sampler takes, and the
    familiarity of each row, or None. `quantiles` takes outputs and levels. The default
    signature has its own number of samples and seed; answers are of `dtype`.
    """
    names = summary_outputs(answers, sampler.summary_specs)

    def summarize(rows: list[Tensor], *drawn: Tensor) -> dict[str, tf.Tensor]:
        found = sampler.summary(rows, *drawn)
        if answers.summary is None:
            return found

        def at(levels: ArrayLike) -> tf.Tensor:
            wanted = tf.cast(levels, tf.float64)
            return sampler.map_rows(
                lambda outputs: quantiles(outputs, wanted),
                rows,
                *drawn,
                tf.TensorSpec(quantiles.outputs[0].shape, tf.float64),
            )

        return answers.summary(found, at)

    def predict(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *given, number, seed = arguments
        rows, familiarity = compare(given)
        summary = summarize(rows, _at_least_two(number), _seed_pair(seed))
        found = {
            name: tf.cast(summary[name], dtype)
            for name in (*names, "mean_standard_error")
        }
        return found if familiarity is None else found | {FAMILIARITY: familiarity}

    def draws(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *given, number, seed = arguments
        rows, _ = compare(given)
        drawn = _at_least_two(number), _seed_pair(seed)
        spec = sampler.program.outputs_spec
        return {"outputs": sampler.map_rows(tf.identity, rows, *drawn, spec)}

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


def _seed_pair(seed: Tensor) -> tf.Tensor:
    # As in `tfbbb.predictive`: the same seed gives the same draws, live and exported.
    return tf.stack([0, seed])
