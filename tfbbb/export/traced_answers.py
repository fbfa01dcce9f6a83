"""The answers of a predictive distribution, as functions in a SavedModel."""

import tensorflow as tf

from tfbbb.export.manifest import Targets
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.compiled import traced


class TracedAnswers(tf.Module):
    """The functions behind `tfbbb.prediction.answers.Answers`, each traced once.

    All take `outputs` first, [rows, S, ..., P].

    Args:
        answers: What is traced.
        outputs: Spec of the outputs.
        targets: What the targets of one row are.
    """

    def __init__(self, answers: Answers, outputs: tf.TensorSpec, targets: Targets):
        super().__init__()
        places = list(outputs.shape[2:-1])
        noise = tf.TensorSpec([None, None, *places, answers.noise_size], tf.float32)
        draws = tf.TensorSpec([None, None], tf.int64)
        given = tf.TensorSpec(
            [None, *targets.shape],
            tf.int32 if answers.task == "classification" else tf.float64,
        )
        self.mean = traced(answers.mean, outputs)
        self.log_prob = traced(answers.log_prob, outputs, given)
        self.log_prob_of_draws = traced(answers.log_prob_of_draws, outputs, given)
        self.sample = traced(answers.sample, outputs, draws, noise)
        if answers.ordered:
            levels = tf.TensorSpec([None], tf.float64)
            self.quantiles = traced(answers.quantiles, outputs, levels)
            width = [1] if answers.task == "classification" else targets.shape[-1:]
            values = tf.TensorSpec([None, *places, *width], tf.float64)
            self.cdf = traced(answers.cdf, outputs, values)
