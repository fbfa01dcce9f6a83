"""The answers of a predictive distribution, as functions in a SavedModel."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.export.exported_passes import at_no_level
from tfbbb.export.manifest import Targets
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.compiled import traced
from tfbbb.prediction.likelihood_answers import LikelihoodAnswers


class AnswerFunctions(tf.Module):
    """What a SavedModel keeps of answers: one function for each.

    All but `summary` take `outputs` first, [rows, S, ..., P].

    Args:
        answers: What is traced.
        outputs: Spec of the outputs.
        targets: What the targets of one row are.
        summary: Specs of the summary of the mixture.

    Attributes:
        levels: Levels of the quantiles that `summary` takes.
        summary: Takes the summary of the mixture and quantiles [rows, Q, ..., k], and
            returns the summary of what is answered. There are both of a recalibration
            only, which changes it.
    """

    def __init__(
        self,
        answers: Answers,
        outputs: tf.TensorSpec,
        targets: Targets,
        summary: Mapping[str, tf.TensorSpec],
    ):
        super().__init__()
        places = list(outputs.shape[2:-1])
        is_classes = answers.task == "classification"
        width = [1] if is_classes else list(targets.shape[-1:])
        noise = tf.TensorSpec([None, None, *places, answers.noise_size], tf.float32)
        draws = tf.TensorSpec([None, None], tf.int64)
        given = tf.TensorSpec(
            [None, *targets.shape], tf.int32 if is_classes else tf.float64
        )
        self.mean = traced(answers.mean, outputs)
        self.log_prob = traced(answers.log_prob, outputs, given)
        self.log_prob_of_draws = traced(answers.log_prob_of_draws, outputs, given)
        self.sample = traced(answers.sample, outputs, draws, noise)
        if answers.ordered:
            levels = tf.TensorSpec([None], tf.float64)
            values = tf.TensorSpec([None, *places, *width], tf.float64)
            self.quantiles = traced(answers.quantiles, outputs, levels)
            self.cdf = traced(answers.cdf, outputs, values)
        if type(answers).summary is not LikelihoodAnswers.summary:
            self._trace_summary(answers, dict(summary), [*places, *width])

    def _trace_summary(
        self, answers: Answers, summary: dict[str, tf.TensorSpec], shape: list[Any]
    ) -> None:
        asked = np.zeros(0)

        def of_summary(mixture: dict[str, Any], quantiles: Any) -> dict[str, Any]:
            def at(levels: np.ndarray) -> Any:
                nonlocal asked
                asked = np.asarray(levels)
                return quantiles

            return answers.summary(mixture, at)

        found = tf.TensorSpec([None, None, *shape], tf.float64)
        self.summary = traced(of_summary, summary, found)
        self.levels = traced(lambda: tf.constant(asked, tf.float64))


class TracedAnswers(Answers):
    """Answers by functions that a SavedModel keeps.

    Signatures that call them hold no second copy.

    Args:
        answers: What is traced.
        outputs: Spec of the outputs.
        targets: What the targets of one row are.
        summary: Specs of the summary of the mixture.
    """

    def __init__(
        self,
        answers: Answers,
        outputs: tf.TensorSpec,
        targets: Targets,
        summary: Mapping[str, tf.TensorSpec],
    ):
        self.functions = AnswerFunctions(answers, outputs, targets, summary)
        self.task = answers.task
        self.ordered = answers.ordered
        self.discrete = answers.discrete
        self.noise_size = answers.noise_size
        self.central_intervals = answers.central_intervals
        self.classes = answers.classes
        self._answers = answers

    def check_targets(self, targets: Any) -> np.ndarray:
        return self._answers.check_targets(targets)

    def reach(self, level: float) -> Any:
        return self._answers.reach(level)

    def mean(self, outputs: Any) -> Any:
        return self.functions.mean(outputs)

    def summary(
        self, summary: dict[str, Any], quantiles: Callable[[np.ndarray], Any]
    ) -> dict[str, Any]:
        if not hasattr(self.functions, "summary"):
            return summary
        levels = self.functions.levels()
        if levels.shape[0]:
            return self.functions.summary(summary, quantiles(levels))
        return self.functions.summary(summary, at_no_level(summary["mean"]))

    def quantiles(self, outputs: Any, levels: Any) -> Any:
        return self.functions.quantiles(outputs, tf.cast(levels, tf.float64))

    def cdf(self, outputs: Any, values: Any) -> Any:
        return self.functions.cdf(outputs, tf.cast(values, tf.float64))

    def log_prob(self, outputs: Any, targets: Any) -> Any:
        dtype = tf.int32 if self.task == "classification" else tf.float64
        return self.functions.log_prob(outputs, tf.cast(targets, dtype))

    def log_prob_of_draws(self, outputs: Any, targets: Any) -> Any:
        return self.functions.log_prob_of_draws(outputs, targets)

    def sample(self, outputs: Any, draws: Any, noise: Any) -> Any:
        return self.functions.sample(outputs, draws, noise)
