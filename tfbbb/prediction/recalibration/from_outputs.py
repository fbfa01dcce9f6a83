"""Predictive distributions of outputs that are already drawn."""

from __future__ import annotations

import functools

import numpy as np

from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.answers import Answers
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
    drawn = np.asarray(outputs)
    likelihood = likelihood.frozen()
    if recalibration.acts_on_outputs:
        drawn = recalibration.outputs(likelihood, drawn)

    def functions(n: int, seed: int) -> np.ndarray:
        raise ValueError(
            "The rows of this prediction have draws of different members, so they "
            "share no function; call `predictive` of the model."
        )

    return Predictive(
        Answers(likelihood, recalibration),
        lambda: iter([drawn]),
        drawn.shape[1],
        seed,
        functions,
    )


def apply(
    recalibration: Recalibration,
    likelihood: Likelihood,
    prediction: Predictive,
    groups: Tensor = None,
) -> Predictive:
    """Returns the prediction of the same rows, recalibrated.

    `groups` are the index of each row's group, [rows]; None without groups.
    """
    density, weights = recalibration.density, likelihood.member_weights
    # Which member a draw belongs to is not known here, and only the parts of the
    # variance and the standard error of the mean depend on it. In an average of models,
    # whose draws come member by member, everything does.
    members = 1 if weights is None else len(weights)
    answers = Answers(likelihood, recalibration, members)
    outputs = None
    if density.acts_on_outputs:
        outputs = functools.partial(density.outputs, likelihood.frozen())
    return prediction.answered_by(answers, groups, outputs)
