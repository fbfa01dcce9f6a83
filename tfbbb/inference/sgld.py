"""Stochastic gradient Langevin dynamics."""

import tensorflow as tf

from tfbbb.inference.stochastic_gradient_mcmc import StochasticGradientMCMC


class SGLD(StochasticGradientMCMC):
    """Stochastic gradient Langevin dynamics (Welling and Teh 2011), with cycles.

        w <- w + epsilon grad log p(w | D) + sqrt(2 epsilon) xi,   xi ~ N(0, I)

    with the gradient of a minibatch, scaled to all N rows. The step size follows
    cyclical cosines (Zhang et al. 2020).

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, np.newaxis]
    >>> inputs = keras.Input((1,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> sgld = tfbbb.inference.SGLD(num_chains=2, num_cycles=2, steps_per_cycle=50)
    >>> len(sgld.fit(model, x, 3.0 * x, verbose=0).members)
    20
    """

    def step(
        self,
        states: tf.Tensor,
        velocity: tf.Tensor,
        gradient: tf.Tensor,
        epsilon: tf.Tensor,
        noise: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        return states + epsilon * gradient + tf.sqrt(2.0 * epsilon) * noise, velocity
