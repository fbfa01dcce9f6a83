"""Rows to label and actions to try, by what the posterior leaves open."""

import numpy as np

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.base.types import ArrayLike
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.ranking import uncertainty

__all__ = ["bald", "thompson_draw"]

# Log of the variance of a target that the model knows without noise.
_LEAST = np.finfo(np.float64).tiny


def bald(prediction: Predictive) -> np.ndarray:
    """Computes the mutual information of each row's target and the weights, in nats.

    "Bayesian active learning by disagreement" (Houlsby et al. 2011):

        I(y; w | x) = H[p(y | x)] - E_q(w)[H[p(y | x, w)]]

    For classes it is the entropy of the mean probabilities less the mean entropy. For
    numbers it is that of a normal with the same variances, `log(variance / aleatoric) /
    2`, summed over targets: exact if function values and noise are normal, the noise is
    the same for all w, and targets are independent.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[9.0, 9.0], [0.1, 0.1]])
    >>> near, far = sorted(tfbbb.lab.acquisition.bald(prediction))
    >>> bool(0 < near < far)
    True

    Args:
        prediction: A `tfbbb.Predictive` of rows without labels.

    Returns:
        [rows], in nats.
    """
    if is_of_classes(prediction):
        return np.asarray(uncertainty(prediction, "mutual_information"))
    ratio = prediction.variance / np.maximum(prediction.aleatoric, _LEAST)
    nats = 0.5 * np.log(np.maximum(ratio, 1.0))
    return np.asarray(nats, np.float64).reshape(len(nats), -1).sum(axis=1)


def thompson_draw(
    model: BayesianModel, actions: ArrayLike, draws: int = 1, seed: int = 0
) -> np.ndarray:
    """Returns the reward of each action under a function drawn from the posterior.

        w ~ q(w),    values_a = E[reward | x_a, w]

    The same function is used for all actions. Choosing the action of the largest value
    therefore tries each action with the probability that it is the best one (Thompson
    1933). With `draws=n` the values are the mean of n functions, which explores less.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))  # a one-hot code of two actions
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> values = tfbbb.lab.acquisition.thompson_draw(model, np.eye(2), seed=1)
    >>> int(np.argmax(values)) in (0, 1)
    True

    Args:
        model: A model of one target, the reward.
        actions: The inputs of each possible action, as a rule the context and a code of
            the action, in the structure of the model's inputs, [actions, ...].
        draws: Number n of functions.
        seed: Seed of the functions: another one for each choice.

    Returns:
        [actions].

    Raises:
        ValueError: The model has several targets or classes, or has no finite reward
            for an action.
    """
    values = model.predictive(actions, seed=seed).joint_sample(draws, seed)
    if values.shape[2:] != (1,):
        raise ValueError(
            "A reward is one number: end the network with the outputs of one target "
            "and choose a likelihood of numbers. "
            f"Received: likelihood={model.likelihood!r}"
        )
    return values[..., 0].mean(axis=0)
