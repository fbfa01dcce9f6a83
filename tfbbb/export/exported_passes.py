"""The passes and the answers of a loaded SavedModel, without Keras."""

import functools
from typing import Any

import tensorflow as tf

from tfbbb.base.types import Structure, Tensor
from tfbbb.export.answer_functions import use_functions
from tfbbb.export.manifest import Manifest
from tfbbb.export.targets import checked_targets
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.compiled import fast_call
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.passes import Passes


def load_passes(saved_model: tf.Module, manifest: Manifest, method: str) -> Passes:
    """Returns passes by one method, with the functions of a SavedModel.

    Args:
        saved_model: The root of the SavedModel, by `tfbbb.export.saved_functions`.
        manifest: Its manifest, of schema version 2 or 3.
        method: One of its methods.
    """
    assert manifest.passes is not None
    functions = saved_model.methods[method]
    answer, add_up = fast_call(functions.answer), fast_call(functions.add_up)

    def summaries(inputs: Tensor, draws: Structure) -> tuple[list[Any], list[Any]]:
        found = answer(inputs, draws)
        return [found["summary"]], [found["outputs"]]

    def sums(inputs: Tensor, draws: Structure) -> tuple[list[Any], list[Any]]:
        found = add_up(inputs, draws)
        return [found["sums"]], [found["outputs"]]

    by_groups = hasattr(saved_model, "groups")
    propagated = method == "moments" and manifest.operations is not None
    # A linearised network draws weights already.
    coherent = "linearised" if method == "linearised" else "weight"
    return Passes(
        draw=fast_call(functions.draw),
        summaries=summaries,
        sums=sums,
        outputs=lambda inputs, draws: sums(inputs, draws)[1],
        merge=fast_call(functions.merge),
        summarize=fast_call(functions.summarize),
        coherent=lambda: load_passes(saved_model, manifest, coherent),
        sizes=manifest.passes[method],
        answers=[load_answers(saved_model.answers[method], manifest)],
        operations=(manifest.operations or ()) if propagated else (),
        groups=fast_call(saved_model.groups) if by_groups else lambda inputs: None,
    )


def load_answers(functions: tf.Module, manifest: Manifest) -> Answers:
    """Returns the answers of a loaded model.

    Args:
        functions: The loaded module of `tfbbb.export.answer_functions.trace_answers`.
        manifest: The model's manifest, of schema version 2 or 3.
    """
    assert manifest.targets is not None
    targets = manifest.targets
    recalibration = manifest.recalibration or {"config": {}}
    config = recalibration["config"]
    scores = config.get("scores")
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
        member_weights=manifest.member_weights,
        reach=None
        if scores is None
        else functools.partial(
            conformal_reach, scores, group_scores=config.get("group_scores", ())
        ),
    )
    # Of arrays, `tf.constant` makes tensors in less time than `tf.cast`.
    return use_functions(answers, functions, fast_call, tf.constant)
