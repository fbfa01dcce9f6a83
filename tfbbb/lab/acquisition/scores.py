"""How much the label of a row would tell, as one number per row."""

import numpy as np

from tfbbb.base.numbers import int32
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import is_of_classes
from tfbbb.scores.metrics.ranking import uncertainty

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
    return _sum_of_row(0.5 * np.log(np.maximum(ratio, 1.0)))


def epistemic_variance(prediction: Predictive) -> np.ndarray:
    """Computes `Var_q(w)[E[y | x, w]]` of each row, summed over targets or classes.

    The rows with the largest value lower the expected squared error most, if all rows
    have the same noise (MacKay 1992).

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[9.0, 9.0], [0.1, 0.1]])
    >>> int(tfbbb.lab.acquisition.epistemic_variance(prediction).argmax())
    0

    Args:
        prediction: A `tfbbb.Predictive` of rows without labels.

    Returns:
        [rows], in squared units of the targets.
    """
    return np.asarray(uncertainty(prediction, "epistemic"))


def entropy(prediction: Predictive) -> np.ndarray:
    """Computes the entropy of each row's predictive distribution, in nats.

    For numbers it is the entropy of a normal with the same variance, summed over
    targets: `log(2 pi e variance) / 2`. The noise of a row counts too, which no label
    of other rows lowers.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(3)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    >>> tfbbb.lab.acquisition.entropy(model.predictive([[0.0, 0.0]])).shape
    (1,)

    Args:
        prediction: A `tfbbb.Predictive` of rows without labels.

    Returns:
        [rows], in nats.
    """
    if is_of_classes(prediction):
        return np.asarray(uncertainty(prediction, "entropy"))
    variance = np.maximum(prediction.variance, _LEAST)
    return _sum_of_row(0.5 * np.log(2.0 * np.pi * np.e * variance))


def random(prediction: Predictive, seed: int = 0) -> np.ndarray:
    """Returns uniform random scores, with which `select` takes rows at random.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> prediction = tfbbb.BayesianModel(inputs, outputs).predictive([[0.0, 0.0]] * 5)
    >>> tfbbb.lab.acquisition.random(prediction, seed=1).shape
    (5,)

    Args:
        prediction: A `tfbbb.Predictive` of rows without labels.
        seed: The same seed gives the same scores.

    Returns:
        [rows], between 0 and 1.
    """
    seed = int32("seed", seed)
    # NumPy takes no negative seed.
    return np.random.default_rng(seed % 2**32).random(len(prediction))


def _sum_of_row(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float64).reshape(len(values), -1).sum(axis=1)
