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
    """Returns the recalibrated prediction of the same rows.

    Example:

    >>> import keras, tfbbb
    >>> from tfbbb.prediction.recalibration.applied import apply
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[1.0, 2.0]])
    >>> wider = tfbbb.recalibration.VarianceScaling([2.0])
    >>> apply(wider, model.likelihood, prediction).stddev / prediction.stddev
    array([[2.]])

    Args:
        recalibration: The recalibration.
        likelihood: p(y | outputs).
        prediction: The prediction of some rows, not recalibrated.
        groups: Index of each row's group, [rows]; None without groups.
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
