"""Applies a recalibration to a prediction that was made without one."""

import functools

from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive


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
    answers = live_answers(likelihood, recalibration, members)
    change = density.outputs if density.acts_on_outputs else None
    outputs = None if change is None else functools.partial(change, likelihood)
    return prediction.answered_by(answers, groups, outputs)
