"""Rows to label and actions to try, by what the posterior leaves open."""

import numpy as np

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.base.numbers import int32
from tfbbb.base.types import ArrayLike
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.ranking import uncertainty

__all__ = ["bald", "select_batch", "thompson_draw"]

# Log of the variance of a target that the model knows without noise.
_LEAST = np.finfo(np.float64).tiny
# The least share of a row's variance that is noise: a label of no noise would tell an
# infinite amount.
_LEAST_NOISE = 1e-6
# Of a row: one that tells less has a finite noise, too.
_LEAST_INFORMATION = 1e-12


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


def select_batch(
    prediction: Predictive, n: int, num_samples: int = 256, seed: int = 0
) -> np.ndarray:
    """Returns the n rows whose labels together tell most, most informative first.

    The n rows of the largest `bald` may all tell the same. Rows are therefore chosen
    one after another, each for the most information beyond the rows before it. Targets
    have the covariance of drawn functions, C, plus the noise of each row, a diagonal D;
    of normal targets with these covariances, a batch b tells

        I(y_b; w) = log det(C_bb + D_bb) / 2 - log det(D_bb) / 2

    Each of several targets, or the one-hot code of each class, counts as if alone. The
    noise of numbers is their aleatoric variance. That of classes is such that a row
    alone tells its mutual information, `bald`: probabilities near 0 or 1 have little
    variance of both kinds, and their ratio would take rows of which all but a few draws
    are certain for the most informative ones. The
    greedy batch has at least 1 - 1/e of the information of the best one, because I is
    submodular (Nemhauser et al. 1978; batches: Kirsch et al. 2019).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> rows = np.array([[900.0, 0.0], [900.0, 0.0], [0.0, 800.0]])
    >>> 2 in tfbbb.lab.acquisition.select_batch(model.predictive(rows), 2)
    True

    Args:
        prediction: A `tfbbb.Predictive` of rows without labels.
        n: Number of rows to select.
        num_samples: Number of functions that are drawn; the rank of C is less.
        seed: Seed of the functions.

    Returns:
        Indices of rows, [n].

    Raises:
        ValueError: There are fewer than n rows, or fewer than two functions.
    """
    rows = len(prediction)
    if int32("n", n, least=1) > rows:
        raise ValueError(
            "There are fewer rows to select from than asked for. "
            f"Received: n={n}, {rows} rows"
        )
    int32("num_samples", num_samples, least=2)
    functions = prediction.joint_sample(num_samples, seed).astype(np.float64)
    functions = functions.reshape(num_samples, rows, -1)
    # [targets, samples, rows], whose products over samples are covariances.
    deviations = np.moveaxis(functions - functions.mean(axis=0), 2, 0)
    deviations /= np.sqrt(num_samples - 1)
    variances = np.square(deviations).sum(axis=1)
    if is_of_classes(prediction):
        told = np.expm1(2.0 * bald(prediction) / len(deviations))
        noise = variances / np.maximum(told, _LEAST_INFORMATION)
    else:
        noise = np.asarray(prediction.aleatoric, np.float64).reshape(rows, -1).T
    noise = np.maximum(noise, _LEAST_NOISE * variances)
    noise = np.maximum(noise, np.finfo(np.float64).tiny)
    chosen: list[int] = []
    for _ in range(n):
        variances = np.square(deviations).sum(axis=1)
        gains = 0.5 * np.log1p(variances / noise).sum(axis=0)
        gains[chosen] = -np.inf
        row = int(np.argmax(gains))
        chosen.append(row)
        deviations = _given_label(deviations, noise, row)
    return np.array(chosen)


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


def _given_label(deviations: np.ndarray, noise: np.ndarray, row: int) -> np.ndarray:
    """Returns deviations whose products are covariances given the label of a row.

    The covariance given a label, C - c c^T / (variance + noise), is A^T (I - b d d^T)^2
    A for the deviations A, the column d of the row, and the b below.
    """
    column = deviations[:, :, row]
    variance = np.square(column).sum(axis=1)
    total = variance + noise[:, row]
    factor = 1.0 / (total + np.sqrt(total * noise[:, row]))
    products = np.einsum("ts,tsr->tr", column, deviations)
    return deviations - (
        factor[:, np.newaxis, np.newaxis]
        * column[:, :, np.newaxis]
        * products[:, np.newaxis, :]
    )
