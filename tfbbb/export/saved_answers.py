"""The answers by the functions that a SavedModel holds, without Keras."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfbbb.export.manifest import Manifest
from tfbbb.export.targets import checked_targets
from tfbbb.prediction import questions
from tfbbb.prediction.answers import Answers, Quantiles, Summary
from tfbbb.prediction.compiled import Compiled
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.types import Tensor


def loaded_answers(functions: Any, manifest: Manifest) -> Answers:
    """Returns the answers of a loaded model.

    Args:
        functions: The functions that `tfbbb.export.answer_functions` traced.
        manifest: The model's manifest, of schema version 2 or 3.
    """
    assert manifest.targets is not None
    targets = manifest.targets
    recalibration = manifest.recalibration or {"config": {}}
    scores = recalibration["config"].get("scores")
    answers = Answers(
        functions={},
        task=manifest.task,
        ordered=targets.ordered,
        discrete=targets.discrete,
        noise_size=targets.noise_size,
        check_targets=functools.partial(
            checked_targets, wanted=targets, classes=manifest.classes
        ),
        classes=manifest.classes,
        reach=None if scores is None else functools.partial(conformal_reach, scores),
    )
    # Of arrays, `tf.constant` makes tensors in less time than `tf.cast`.
    return answered_by(answers, functions, Compiled, tf.constant)


def answered_by(
    answers: Answers,
    functions: Any,
    call: Callable[[Any], Callable[..., Any]] = lambda function: function,
    convert: Callable[[Any, Any], Any] = tf.cast,
) -> Answers:
    """Returns the same answers, computed by the functions of a SavedModel.

    Args:
        answers: The answers.
        functions: The functions that `tfbbb.export.answer_functions` traced, before
            they are saved or after.
        call: Returns how a function is called.
        convert: Converts an argument of a function to a type.
    """
    return dataclasses.replace(
        answers,
        functions={
            question.name: _converting(getattr(functions, question.name), call, convert)
            for question in questions.QUESTIONS
            if hasattr(functions, question.name)
        },
        summary=_summary(functions, call) if hasattr(functions, "summary") else None,
    )


def _converting(function: Any, call: Any, convert: Any) -> Callable[..., Any]:
    """Returns a function that converts its arguments to the types of a traced one."""
    called = call(function)
    # The first input is the outputs of the network.
    dtypes = [tensor.dtype for tensor in function.inputs[1:]]

    def converted(outputs: Tensor, *arguments: Any) -> Any:
        return called(outputs, *map(convert, arguments, dtypes))

    return converted


def _summary(functions: Any, call: Any) -> Callable[[Summary, Quantiles], Summary]:
    change = call(functions.summary)
    levels = functions.levels().numpy()

    def summary(of_mixture: Summary, quantiles: Quantiles) -> Summary:
        of_mixture = {name: tf.convert_to_tensor(x) for name, x in of_mixture.items()}
        if len(levels):
            found = tf.convert_to_tensor(quantiles(levels))
        else:
            # Quantiles at no level, in the shape that the mean gives them.
            mean = of_mixture["mean"]
            found = tf.zeros([tf.shape(mean)[0], 0, *mean.shape[1:]], tf.float64)
        return change(of_mixture, found)

    return summary
