"""Maximum a posteriori."""

from tfbbb.inference.gradient_training import GradientTraining


class MAP(GradientTraining):
    """The mode of the posterior: `argmax_w log p(D | w) + log p(w)`.

    Returns `point` posteriors with the priors of the model. On a linear network with
    noise s and normal priors of scale r they are those of ridge regression with the
    penalty `s^2 / r^2`. The mode depends on the units of the weights; a learned noise
    has no prior and is at its maximum likelihood.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> method = tfbbb.inference.MAP(epochs=2)
    >>> model = method.fit(network, x, 3.0 * x, likelihood="normal", verbose=0)
    >>> model.variational_layers[0].posterior
    Point()
    """
