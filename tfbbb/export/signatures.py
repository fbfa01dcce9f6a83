"""The signatures of an exported posterior predictive."""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.export.compared_rows import Compare
from tfbbb.export.sampler import Sampler
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers, summary_outputs
from tfbbb.prediction.questions import Question, question_named

FAMILIARITY = "familiarity"
# A stream of noise that no layer uses.
_TARGET_NOISE = 1 << 30
_MEMBERS = _TARGET_NOISE + 1

# Takes what the sampler takes and returns one number for each row.
OfRows = Callable[[list[Tensor]], Tensor | None]
Signature = tuple[Callable[..., dict[str, tf.Tensor]], list[tf.TensorSpec]]

_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")
_LEVELS = tf.TensorSpec([None], tf.float32, name="levels")


class Signatures:
    """The signatures that answer by one sampler.

    Each is a pure function of feature tensors and arguments, and bounded in memory.

    Args:
        sampler: Draws the network's outputs, of tensors in a list.
        answers: The answers about the predictive distribution.
        features: Specs of the feature tensors, named as in the signatures.
        groups: Takes what the sampler takes and returns the index of each row's group,
            or None without groups.
        compare: Takes feature tensors and returns what the sampler takes, and the
            familiarity of each row, [rows], or None without one.
        dtype: The type of numbers in answers, and of targets.
    """

    def __init__(
        self,
        sampler: Sampler,
        answers: Answers,
        features: Sequence[tf.TensorSpec],
        groups: OfRows,
        compare: Compare,
        dtype: tf.DType = tf.float32,
    ):
        self._sampler = sampler
        self._answers = answers
        self._features = list(features)
        self._groups = groups
        self._compare = compare
        self._dtype = dtype
        self._is_classes = answers.task == "classification"
        *self._places, self._width = sampler.summary_specs["mean"].shape[1:]

    def all(self, num_samples: int, seed: int) -> dict[str, Signature]:
        """Returns function and input specs of each signature by its name.

        They are `serving_default`, `predict`, and one for each question with an output.
        """
        drawn = [*self._features, _NUM_SAMPLES, _SEED]
        summary = self._summary_function()

        def serving_default(*features: Tensor) -> dict[str, tf.Tensor]:
            return summary(*features, num_samples, seed)

        signatures: dict[str, Signature] = {
            "serving_default": (serving_default, self._features),
            "predict": (self._summary_function("mean_standard_error"), drawn),
        }
        for question in questions.QUESTIONS:
            if question.of_summary:
                if self._is_classes >= question.needs_classes and (
                    self._answers.ordered or not question.needs_order
                ):
                    function = self._of_summary_function(question)
                    signatures[question.name] = (function, [*drawn, _LEVELS])
            elif question.output and question.name in self._answers.functions:
                specs = self._argument_specs(question).values()
                function = self._question_function(question)
                signatures[question.name] = (function, [*drawn, *specs])
        return signatures

    def _summary_function(self, *more: str) -> Callable[..., dict[str, tf.Tensor]]:
        names = [*summary_outputs(self._answers, self._sampler.summary_specs), *more]

        def predict(*arguments: Tensor) -> dict[str, tf.Tensor]:
            *features, num_samples, seed = arguments
            rows, familiarity = self._compare(features)
            found = self._summarize(rows, num_samples, seed, names)
            return found if familiarity is None else found | {FAMILIARITY: familiarity}

        return predict

    def _of_summary_function(
        self, question: Question
    ) -> Callable[..., dict[str, tf.Tensor]]:
        """Returns the signature of a question about the summary."""

        def answer(*arguments: Tensor) -> dict[str, tf.Tensor]:
            *features, num_samples, seed, levels = arguments
            rows, _ = self._compare(features)
            drawn = (rows, num_samples, seed)
            # Intervals follow from quantiles alone.
            summary = {}
            if question.needs_classes:
                summary = self._summarize(*drawn, ["probabilities"], tf.float64)
            compute = getattr(self._answers, question.name)
            quantiles = functools.partial(self._quantiles, *drawn)
            found = compute(summary, quantiles, levels, self._groups(rows))
            if found.dtype != tf.bool:
                found = tf.cast(found, self._dtype)
            if not question.parts:
                return {question.output: found}
            parts = tf.unstack(found, len(question.parts), axis=1)
            return dict(zip(question.parts, parts, strict=True))

        return answer

    def _question_function(
        self, question: Question
    ) -> Callable[..., dict[str, tf.Tensor]]:
        names = list(self._argument_specs(question))

        def answer(*arguments: Tensor) -> dict[str, tf.Tensor]:
            first = len(arguments) - len(names)
            *features, num_samples, seed = arguments[:first]
            given = dict(zip(names, arguments[first:], strict=True))
            rows, _ = self._compare(features)
            found = self._answer(question, rows, num_samples, seed, given)
            if question.draws_first:
                found = tf.transpose(found, [1, 0, *range(2, len(found.shape))])
            dtype = found.dtype if found.dtype.is_integer else self._dtype
            return {question.output: tf.cast(found, dtype)}

        return answer

    def _argument_specs(self, question: Question) -> dict[str, tf.TensorSpec]:
        """Returns the specs of the arguments that a signature takes, by name."""
        places, width = self._places, self._width
        specs = {
            "levels": _LEVELS,
            "values": tf.TensorSpec(
                [None, *places, 1 if self._is_classes else width],
                self._dtype,
                name="values",
            ),
            "targets": tf.TensorSpec(
                [None, *places] if self._is_classes else [None, *places, width],
                tf.int32 if self._is_classes else self._dtype,
                name="targets",
            ),
        }
        return {name: specs[name] for name in question.arguments if name in specs}

    def _answer_spec(self, question: Question) -> tf.TensorSpec:
        """Returns the spec of a question's answer, with the rows first."""
        ends = {
            "means": [self._width],
            "numbers": [1 if self._is_classes else self._width],
            "y": [] if self._is_classes else [self._width],
        }
        axes = [None for axis in question.shape if axis not in ends]
        end = [size for axis in question.shape for size in ends.get(axis, [])]
        dtype = tf.float64
        if "y" in question.shape:
            dtype = tf.int32 if self._is_classes else self._dtype
        return tf.TensorSpec([None, *axes, *self._places, *end], dtype)

    def _answer(
        self,
        question: Question,
        rows: Sequence[Tensor],
        num_samples: int | Tensor,
        seed: Tensor,
        given: dict[str, Tensor],
    ) -> tf.Tensor:
        """Returns the answer to a question for all rows, block by block."""
        by_row = {}
        for name, values in given.items():
            if name == "levels":
                continue
            sizes = [tf.shape(tensor)[0] for tensor in (rows[0], values)]
            message = f"`{name}` must have one entry for each row."
            same = tf.debugging.assert_equal(*sizes, message)
            with tf.control_dependencies([same]):
                by_row[name] = tf.identity(values)
        answers, spec = self._answers, self._answer_spec(question)

        def answer_rows(outputs: Tensor, first: int | Tensor) -> tf.Tensor:
            count = tf.shape(outputs)[0]
            arguments = given | {
                name: values[first : first + count] for name, values in by_row.items()
            }
            if "draws" in question.arguments:
                num_draws = tf.shape(outputs)[1]
                arguments |= self.sampling(num_samples, seed, count, num_draws, first)
            ordered = [arguments[name] for name in question.arguments]
            return tf.cast(answers.ask(question.name, outputs, *ordered), spec.dtype)

        num_samples, seed_pair = _at_least_two(num_samples), _seed_pair(seed)
        return self._sampler.map_rows(
            answer_rows, list(rows), num_samples, seed_pair, spec
        )

    def sampling(
        self,
        num_samples: int | Tensor,
        seed: Tensor,
        count: int | Tensor,
        num_draws: int | Tensor,
        first: int | Tensor = 0,
    ) -> dict[str, tf.Tensor]:
        """Returns the `draws` of samples, [rows, n], and `noise`, [rows, n, ...]."""
        answers = self._answers
        draws = tf.range(tf.cast(num_samples, tf.int64))
        if answers.member_weights is not None:
            draws = _draws_by_weight(draws, answers.member_weights, num_draws, seed)
        return {
            "draws": tf.broadcast_to(draws, [count, num_samples]),
            "noise": noise.normal_block(
                noise.fold(_seed_pair(seed), _TARGET_NOISE),
                first,
                count,
                [num_samples, *self._places, answers.noise_size],
            ),
        }

    def _quantiles(
        self,
        rows: Sequence[Tensor],
        num_samples: int | Tensor,
        seed: Tensor,
        levels: ArrayLike,
    ) -> tf.Tensor:
        question = question_named("quantiles")
        return self._answer(question, rows, num_samples, seed, {"levels": levels})

    def _summarize(
        self,
        rows: Sequence[Tensor],
        num_samples: int | Tensor,
        seed: Tensor,
        names: Sequence[str],
        dtype: tf.DType | None = None,
    ) -> dict[str, tf.Tensor]:
        summary = self._sampler.summary(
            list(rows), _at_least_two(num_samples), _seed_pair(seed)
        )
        if self._answers.summary is not None:
            quantiles = functools.partial(self._quantiles, rows, num_samples, seed)
            summary = self._answers.summary(summary, quantiles)
        dtype = dtype or self._dtype
        return {name: tf.cast(summary[name], dtype) for name in names}


def _draws_by_weight(
    indices: tf.Tensor, weights: Sequence[float], num_draws: Tensor, seed: Tensor
) -> tf.Tensor:
    """Returns n draws, of `num_draws` of K members, by the weights of the members."""
    uniform = tf.random.stateless_uniform(
        tf.shape(indices), noise.fold(_seed_pair(seed), _MEMBERS), dtype=tf.float64
    )
    # Rounding may leave the sum below 1.
    bounds = np.append(np.cumsum(weights)[:-1], 1.0)
    members = tf.searchsorted(tf.constant(bounds), uniform, side="right")
    each = tf.cast(num_draws // len(weights), tf.int64)
    return (indices % each) * len(weights) + tf.cast(members, tf.int64)


def _at_least_two(num_samples: int | Tensor) -> tf.Tensor:
    enough = tf.debugging.assert_greater_equal(
        num_samples, 2, "num_samples must be at least 2."
    )
    with tf.control_dependencies([enough]):
        return tf.identity(num_samples)


def _seed_pair(seed: Tensor) -> tf.Tensor:
    # As in `tfbbb.predictive`: the same seed gives the same draws, live and exported.
    return tf.stack([0, seed])
