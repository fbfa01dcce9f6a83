"""The functions that a SavedModel holds to answer questions about predictions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.export.manifest import Targets
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.compiled import traced


def answer_functions(
    answers: Answers,
    outputs: tf.TensorSpec,
    targets: Targets,
    summary: Mapping[str, tf.TensorSpec],
) -> tf.Module:
    """Returns a module with one traced function for each question that has an answer.

    Each takes `outputs` [rows, S, ..., P] and the question's arguments. Where a
    recalibration changes the summary, the module also has `summary`, which takes the
    summary of the mixture and quantiles [rows, Q, ..., k] and returns the answered
    summary, and `levels`, which returns the levels of these quantiles.

    Args:
        answers: The answers to trace.
        outputs: Spec of the outputs.
        targets: What the targets of one row are.
        summary: Specs of the summary of the mixture.
    """
    places = list(outputs.shape[2:-1])
    is_classes = answers.task == "classification"
    width = [1] if is_classes else list(targets.shape[-1:])
    specs = {
        "targets": tf.TensorSpec(
            [None, *targets.shape], tf.int32 if is_classes else tf.float64
        ),
        "values": tf.TensorSpec([None, *places, *width], tf.float64),
        "levels": tf.TensorSpec([None], tf.float64),
        "draws": tf.TensorSpec([None, None], tf.int64),
        "noise": tf.TensorSpec([None, None, *places, answers.noise_size], tf.float32),
    }
    module = tf.Module()
    for question in questions.QUESTIONS:
        if question.name in answers.functions:
            function = answers.functions[question.name]
            arguments = [specs[argument] for argument in question.arguments]
            setattr(module, question.name, traced(function, outputs, *arguments))
    if answers.summary is not None:
        _trace_summary(module, answers.summary, dict(summary), [*places, *width])
    return module


def _trace_summary(
    module: tf.Module,
    change: Any,
    summary: dict[str, tf.TensorSpec],
    shape: list[int | None],
) -> None:
    asked = np.zeros(0)

    def of_summary(mixture: dict[str, Any], quantiles: Any) -> dict[str, Any]:
        def at(levels: np.ndarray) -> Any:
            nonlocal asked
            asked = np.asarray(levels)
            return quantiles

        return change(mixture, at)

    quantiles = tf.TensorSpec([None, None, *shape], tf.float64)
    module.summary = traced(of_summary, summary, quantiles)
    module.levels = traced(lambda: tf.constant(asked, tf.float64))
