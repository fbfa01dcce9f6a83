"""The functions that a SavedModel holds to answer questions about predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tfbbb.base.lazy import tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.export.manifest import Targets
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers, Quantiles, Summary
from tfbbb.prediction.compiled import traced

if TYPE_CHECKING:
    ConcreteFunction: TypeAlias = tf.types.experimental.ConcreteFunction
# Returns how a function is called, and converts an argument to a type.
Call = Callable[["ConcreteFunction"], Callable[..., Tensor]]
Convert = Callable[[ArrayLike, "tf.DType"], Tensor]


def trace_answers(
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
    change: Callable[[Summary, Quantiles], Summary],
    summary: dict[str, tf.TensorSpec],
    shape: list[int | None],
) -> None:
    asked = np.zeros(0)

    def change_summary(mixture: Summary, quantiles: Tensor) -> Summary:
        def at(levels: ArrayLike) -> Tensor:
            nonlocal asked
            asked = np.asarray(levels)
            return quantiles

        return change(mixture, at)

    quantiles = tf.TensorSpec([None, None, *shape], tf.float64)
    module.summary = traced(change_summary, summary, quantiles)
    module.levels = traced(lambda: tf.constant(asked, tf.float64))


def use_functions(
    answers: Answers,
    functions: tf.Module,
    call: Call = lambda function: function,
    convert: Convert = lambda value, dtype: tf.cast(value, dtype),
) -> Answers:
    """Returns the same answers, computed by the functions of a SavedModel."""
    return dataclasses.replace(
        answers,
        functions={
            question.name: _convert_arguments(
                getattr(functions, question.name), call, convert
            )
            for question in questions.QUESTIONS
            if hasattr(functions, question.name)
        },
        summary=_summary(functions, call) if hasattr(functions, "summary") else None,
    )


def _convert_arguments(
    function: ConcreteFunction, call: Call, convert: Convert
) -> Callable[..., Tensor]:
    """Returns a function that converts its arguments to the types of a traced one."""
    called = call(function)
    # The first input is the outputs of the network.
    dtypes = [given.dtype for given in function.inputs[1:]]

    def converted(outputs: Tensor, *arguments: ArrayLike) -> Tensor:
        return called(outputs, *map(convert, arguments, dtypes))

    return converted


def _summary(
    functions: tf.Module, call: Call
) -> Callable[[Summary, Quantiles], Summary]:
    change = call(functions.summary)
    levels = np.asarray(functions.levels())

    def summary(mixture_summary: Summary, quantiles: Quantiles) -> Summary:
        if len(levels):
            found = quantiles(levels)
        else:
            # Quantiles at no level, in the shape that the mean gives them.
            found = mixture_summary["mean"][:, np.newaxis][:, :0]
        return change(mixture_summary, found)

    return summary
