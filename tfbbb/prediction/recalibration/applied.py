"""Applies a recalibration to a prediction that was made without one."""

import tensorflow as tf

from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.recalibration.recalibration import Recalibration
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.summary import summary, sums


def apply(
    recalibration: Recalibration,
    likelihood: Likelihood,
    prediction: Predictive,
    groups: Tensor = None,
) -> Predictive:
    """Returns the prediction of the same rows, recalibrated.

    `groups` are the index of each row's group, [rows]; None without groups.
    """
    answers = live_answers(likelihood, recalibration)
    density = recalibration.density
    if not density.acts_on_outputs:
        return prediction.answered_by(answers, groups)

    def outputs(given: Tensor) -> tf.Tensor:
        return density.outputs(likelihood, given)

    def summarize(given: Tensor) -> dict[str, tf.Tensor]:
        # Which member a draw belongs to is not known here, and only the parts of the
        # variance and the standard error of the mean depend on it. In an average of
        # models, whose draws come member by member, everything does.
        weights = likelihood.member_weights
        members = 1 if weights is None else len(weights)
        return summary(sums(likelihood, outputs(given), members), weights=weights)

    return prediction.answered_by(
        answers, groups, outputs=outputs, summary=prediction.of_outputs(summarize)
    )
