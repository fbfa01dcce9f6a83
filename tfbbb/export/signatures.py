"""The signatures of an exported posterior predictive."""

from collections.abc import Callable, Container, Sequence

import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.export.sampler import Sampler
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.questions import Question, question_named

_REGRESSION_SUMMARY = ("mean", "variance", "epistemic", "aleatoric")
_CLASS_SUMMARY = ("probabilities", "entropy", "mutual_information")
# A stream of noise that no layer uses.
_TARGET_NOISE = 1 << 30
_MEMBERS = _TARGET_NOISE + 1

Groups = Callable[[list[Tensor]], Tensor | None]
Signature = tuple[Callable[..., dict[str, tf.Tensor]], list[tf.TensorSpec]]

_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")
_LEVELS = tf.TensorSpec([None], tf.float32, name="levels")


def all_signatures(
    sampler: Sampler,
    answers: Answers,
    features: Sequence[tf.TensorSpec],
    num_samples: int,
    seed: int,
    groups: Groups,
) -> dict[str, Signature]:
    """Returns function and input specs of each signature by its name.

    Each function is a pure function of feature tensors and arguments, and bounded in
    memory: `serving_default`, `predict`, and one for each question with an output.

    Args:
        sampler: Draws the network's outputs, of feature tensors in a list.
        answers: The answers about the predictive distribution.
        features: Specs of the feature tensors, named as in the signatures.
        num_samples: Samples behind `serving_default`.
        seed: Seed of `serving_default`.
        groups: Takes feature tensors and returns the index of each row's group, or
            None without groups.
    """
    drawn = [*features, _NUM_SAMPLES, _SEED]
    signatures = {
        "serving_default": default_signature(
            sampler, answers, features, num_samples, seed
        ),
        "predict": (_summary_function(sampler, answers, "mean_standard_error"), drawn),
    }
    for question in questions.QUESTIONS:
        if question.of_summary:
            is_classes = answers.task == "classification"
            if is_classes >= question.needs_classes and (
                answers.ordered or not question.needs_order
            ):
                function = _of_summary_function(question, sampler, answers, groups)
                signatures[question.name] = (function, [*drawn, _LEVELS])
        elif question.output and question.name in answers.functions:
            specs = _argument_specs(question, sampler, answers)
            function = _question_function(question, sampler, answers)
            signatures[question.name] = (function, [*drawn, *specs.values()])
    return signatures


def default_signature(
    sampler: Sampler,
    answers: Answers,
    features: Sequence[tf.TensorSpec],
    num_samples: int,
    seed: int,
) -> Signature:
    """Returns the signature that gives the summary of fixed draws."""
    summary = _summary_function(sampler, answers)

    def serving_default(*features: Tensor) -> dict[str, tf.Tensor]:
        return summary(*features, num_samples, seed)

    return serving_default, list(features)


def summary_outputs(answers: Answers, summary: Container[str]) -> list[str]:
    """Returns the names of the outputs of `serving_default`.

    Args:
        answers: The answers about the predictive distribution.
        summary: The names of what the summary has.
    """
    is_classes = answers.task == "classification"
    names = list(_CLASS_SUMMARY if is_classes else _REGRESSION_SUMMARY)
    return [*names, *(["between_members"] if "between_members" in summary else [])]


def _summary_function(
    sampler: Sampler, answers: Answers, *more: str
) -> Callable[..., dict[str, tf.Tensor]]:
    names = [*summary_outputs(answers, sampler.summary_specs), *more]

    def predict(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *features, num_samples, seed = arguments
        return _summarize(sampler, answers, features, num_samples, seed, names)

    return predict


def _of_summary_function(
    question: Question, sampler: Sampler, answers: Answers, groups: Groups
) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the signature of a question about the summary."""
    names = ["mean", "variance"]
    if answers.task == "classification":
        names = ["probabilities"]

    def answer(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *features, num_samples, seed, levels = arguments
        drawn = (sampler, answers, features, num_samples, seed)

        def quantiles(levels: ArrayLike) -> tf.Tensor:
            return _answer(question_named("quantiles"), *drawn, {"levels": levels})

        # Intervals between quantiles need no summary.
        summary = {}
        if question.needs_classes or not answers.central_intervals:
            summary = _summarize(*drawn, names, tf.float64)
        compute = getattr(answers, question.name)
        found = compute(summary, quantiles, levels, groups(features))
        if found.dtype != tf.bool:
            found = tf.cast(found, tf.float32)
        if not question.parts:
            return {question.output: found}
        parts = tf.unstack(found, len(question.parts), axis=1)
        return dict(zip(question.parts, parts, strict=True))

    return answer


def _question_function(
    question: Question, sampler: Sampler, answers: Answers
) -> Callable[..., dict[str, tf.Tensor]]:
    def answer(*arguments: Tensor) -> dict[str, tf.Tensor]:
        names = list(_argument_specs(question, sampler, answers))
        first = len(arguments) - len(names)
        *features, num_samples, seed = arguments[:first]
        given = dict(zip(names, arguments[first:], strict=True))
        found = _answer(question, sampler, answers, features, num_samples, seed, given)
        if question.draws_first:
            found = tf.transpose(found, [1, 0, *range(2, len(found.shape))])
        dtype = found.dtype if found.dtype.is_integer else tf.float32
        return {question.output: tf.cast(found, dtype)}

    return answer


def _argument_specs(
    question: Question, sampler: Sampler, answers: Answers
) -> dict[str, tf.TensorSpec]:
    """Returns the specs of the arguments that a signature takes, by name."""
    *places, width = sampler.summary_specs["mean"].shape[1:]
    is_classes = answers.task == "classification"
    specs = {
        "levels": _LEVELS,
        "values": tf.TensorSpec(
            [None, *places, 1 if is_classes else width], tf.float32, name="values"
        ),
        "targets": tf.TensorSpec(
            [None, *places] if is_classes else [None, *places, width],
            tf.int32 if is_classes else tf.float32,
            name="targets",
        ),
    }
    return {name: specs[name] for name in question.arguments if name in specs}


def _answer_spec(
    question: Question, sampler: Sampler, answers: Answers
) -> tf.TensorSpec:
    """Returns the spec of a question's answer, with the rows first."""
    *places, width = sampler.summary_specs["mean"].shape[1:]
    is_classes = answers.task == "classification"
    ends = {
        "means": [width],
        "numbers": [1 if is_classes else width],
        "y": [] if is_classes else [width],
    }
    axes = [None for axis in question.shape if axis not in ends]
    end = [size for axis in question.shape for size in ends.get(axis, [])]
    dtype = tf.float64
    if "y" in question.shape:
        dtype = tf.int32 if is_classes else tf.float32
    return tf.TensorSpec([None, *axes, *places, *end], dtype)


def _answer(
    question: Question,
    sampler: Sampler,
    answers: Answers,
    features: Sequence[Tensor],
    num_samples: int | Tensor,
    seed: Tensor,
    given: dict[str, Tensor],
) -> tf.Tensor:
    """Returns the answer to a question for all rows, block by block."""
    by_row = {}
    for name, values in given.items():
        if name == "levels":
            continue
        rows = [tf.shape(tensor)[0] for tensor in (features[0], values)]
        message = f"`{name}` must have one entry for each row."
        same = tf.debugging.assert_equal(*rows, message)
        with tf.control_dependencies([same]):
            by_row[name] = tf.identity(values)
    places = sampler.summary_specs["mean"].shape[1:-1]
    spec = _answer_spec(question, sampler, answers)

    def answer_rows(outputs: Tensor, first: int | Tensor) -> tf.Tensor:
        rows = tf.shape(outputs)[0]
        arguments = given | {
            name: values[first : first + rows] for name, values in by_row.items()
        }
        if "draws" in question.arguments:
            weights = answers.member_weights
            draws = tf.range(tf.cast(num_samples, tf.int64))
            if weights is not None:
                draws = _draws_by_weight(draws, weights, tf.shape(outputs)[1], seed)
            arguments["draws"] = tf.broadcast_to(draws, [rows, num_samples])
        if "noise" in question.arguments:
            arguments["noise"] = noise.normal_block(
                noise.fold(_seed_pair(seed), _TARGET_NOISE),
                first,
                rows,
                [num_samples, *places, answers.noise_size],
            )
        ordered = [arguments[name] for name in question.arguments]
        return tf.cast(answers.ask(question.name, outputs, *ordered), spec.dtype)

    return sampler.map_rows(
        answer_rows,
        list(features),
        _at_least_two(num_samples),
        _seed_pair(seed),
        spec,
    )


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


def _summarize(
    sampler: Sampler,
    answers: Answers,
    features: Sequence[Tensor],
    num_samples: int | Tensor,
    seed: Tensor,
    names: Sequence[str],
    dtype: tf.DType = tf.float32,
) -> dict[str, tf.Tensor]:
    summary = sampler.summary(
        list(features), _at_least_two(num_samples), _seed_pair(seed)
    )

    def quantiles(levels: ArrayLike) -> tf.Tensor:
        question = question_named("quantiles")
        given = {"levels": levels}
        return _answer(question, sampler, answers, features, num_samples, seed, given)

    if answers.summary is not None:
        summary = answers.summary(summary, quantiles)
    return {name: tf.cast(summary[name], dtype) for name in names}


def _at_least_two(num_samples: int | Tensor) -> tf.Tensor:
    enough = tf.debugging.assert_greater_equal(
        num_samples, 2, "num_samples must be at least 2."
    )
    with tf.control_dependencies([enough]):
        return tf.identity(num_samples)


def _seed_pair(seed: Tensor) -> tf.Tensor:
    # As in `tfbbb.predictive`: the same seed gives the same draws, live and exported.
    return tf.stack([0, seed])
