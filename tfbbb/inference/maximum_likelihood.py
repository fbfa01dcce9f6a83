"""Maximum likelihood."""

from tfbbb.inference.gradient_training import GradientTraining
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior


class MaximumLikelihood(GradientTraining):
    """The weights that make the data most likely: `argmax_w log p(D | w)`.

    Returns `point` posteriors without priors. On a linear network with normal noise
    they are those of least squares.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> method = tfbbb.inference.MaximumLikelihood(epochs=100, learning_rate=0.1)
    >>> model = method.fit(network, x, 3.0 * x, likelihood="normal", verbose=0)
    >>> round(float(model.variational_layers[0].kernel.mean[0, 0]), 2)
    3.0

    Args:
        learning_rate: The learning rate of Adam at the start; it decays to 0.
    """

    def _start(self, model: BayesianModel) -> BayesianModel:
        return with_posterior(model, "point", prior=None, bias_prior=None)
