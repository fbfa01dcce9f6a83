"""Predictive distributions of outputs that are already drawn."""

import numpy as np
import tensorflow as tf

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.result import Predictive


def predictive_from_outputs(
    likelihood: Likelihood,
    outputs: np.ndarray,
    recalibration: Recalibration = IDENTITY,
    *,
    seed: int = 0,
) -> Predictive:
    """Returns the mixture of the likelihoods under drawn outputs, [rows, S, ..., P].

    The rows may have been drawn from different members, so no function is coherent over
    the rows, and `joint_sample` is an error.
    """
    drawn = tf.convert_to_tensor(outputs)
    if recalibration.acts_on_outputs:
        drawn = recalibration.outputs(likelihood, drawn)

    def functions(n: int, seed: int) -> np.ndarray:
        raise ValueError(
            "The rows of this prediction have draws of different members, so they "
            "share no function; call `predictive` of the model."
        )

    return Predictive(
        live_answers(likelihood, recalibration),
        lambda: iter([drawn]),
        drawn.shape[1],
        seed,
        functions,
    )
