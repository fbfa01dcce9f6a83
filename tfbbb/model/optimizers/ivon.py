"""The improved variational online Newton method (IVON)."""

from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.noise import fold, normal
from tfbbb.base.numbers import fraction, int32, positive_number
from tfbbb.base.private_apis import index_in_optimizer
from tfbbb.base.types import Config, LearningRate, Tensor


@keras.saving.register_keras_serializable(package="tfbbb.optimizers")
class IVON(keras.optimizers.Optimizer):
    """Variational inference at the price of Adam (Shen et al. 2024, algorithm 1).

    The optimizer learns a normal `q(w) = N(m, sigma^2)` over the weights of any network
    that Keras trains, by the variational online Newton method. For the mean loss over
    N rows, whose gradient at a draw `w = m + sigma e` is g, and the prior
    `N(0, 1 / prior_precision)`, with `delta = prior_precision / N`,

        h_hat  = g (w - m) / sigma^2
        g_bar <- beta_1 g_bar + (1 - beta_1) g
        h     <- beta_2 h + (1 - beta_2) h_hat
                 + (1 - beta_2)^2 (h - h_hat)^2 / (2 (h + delta))
        m     <- m - rate (g_bar / (1 - beta_1^t) + delta m) / (h + delta)
        sigma  = 1 / sqrt(N (h + delta))

    h stays positive: it is the expected Hessian of the mean loss, estimated without a
    second gradient. The learning rate is relative to Newton's step, whatever
    `initial_hessian` is: the factor `h_0 + delta` of the algorithm is left out.

    While `fit` runs, the variables hold the draw at which the next gradient is taken;
    when it ends, they hold m. `posterior_scale` returns sigma.

    A `tfbbb.BayesianModel` with `point` posteriors has its priors in the loss: then
    `prior_precision` is 0. `tfbbb.inference.IVON` trains it so and returns
    `mean_field_normal` posteriors.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.default_rng(0).normal(size=(80, 3)).astype("float32")
    >>> network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> optimizer = tfbbb.optimizers.IVON(num_rows=80, prior_precision=1.0)
    >>> network.compile(optimizer, loss="mse")
    >>> history = network.fit(x, x[:, :1], epochs=2, verbose=0)
    >>> optimizer.posterior_scale(network.trainable_variables[0]).shape
    TensorShape([3, 1])

    Args:
        learning_rate: Step size, relative to Newton's step, or a schedule.
        num_rows: Number N of training rows; a smaller number makes q narrower than the
            posterior, by the temperature it stands for, and a larger one wider.
        prior_precision: Inverse variance of the prior around 0; 0 for none, or where
            the loss has the prior.
        initial_hessian: h at the start, in units of the mean loss per row.
        beta_1: Decay of the mean gradient.
        beta_2: Decay of h: about `1 / (1 - beta_2)` steps make it, and with batches of
            B rows its relative error is about `sqrt((1 - beta_2) N / (2 B))`. Networks
            that train for many steps use 0.99999.
        clip_radius: Largest step of a weight before the learning rate, or None. It
            keeps the first steps small where h is still below the curvature.
        seed: The same seed gives the same draws.
        name: Name of the optimizer.
        **kwargs: As for `keras.optimizers.Optimizer`.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.1,
        num_rows: float = 1.0,
        prior_precision: float = 0.0,
        initial_hessian: float = 1.0,
        beta_1: float = 0.9,
        beta_2: float = 0.9995,
        clip_radius: float | None = 1.0,
        seed: int = 0,
        name: str = "ivon",
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.num_rows = positive_number("num_rows", num_rows)
        if prior_precision:
            positive_number("prior_precision", prior_precision)
        self.prior_precision = float(prior_precision)
        self.initial_hessian = positive_number("initial_hessian", initial_hessian)
        for label, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
            fraction(label, beta)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        if clip_radius is not None:
            positive_number("clip_radius", clip_radius)
        self.clip_radius = clip_radius
        self.seed = int32("seed", seed)

    @property
    def _delta(self) -> float:
        return self.prior_precision / self.num_rows

    def build(self, variables: list[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._gradients = self.add_optimizer_variables(variables, "gradient")
        self._noises = self.add_optimizer_variables(variables, "noise")
        self._hessians = self.add_optimizer_variables(
            variables,
            "hessian",
            initializer=keras.initializers.Constant(self.initial_hessian),
        )

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: LearningRate
    ) -> None:
        index = index_in_optimizer(self, variable)
        dtype = variable.dtype
        averaged, noise = self._gradients[index], self._noises[index]
        hessian, delta = self._hessians[index], self._delta
        gradient = tf.cast(tf.convert_to_tensor(gradient), dtype)
        step = tf.cast(self.iterations, dtype) + 1
        old_noise = tf.convert_to_tensor(noise)
        mean = tf.convert_to_tensor(variable) - old_noise
        # Price's theorem: E[g (w - m)] / sigma^2 is the expected Hessian.
        h = tf.convert_to_tensor(hessian)
        h_hat = gradient * old_noise * self.num_rows * (h + delta)
        share = 1.0 - self.beta_2
        new_h = h + share * (h_hat - h)
        new_h += 0.5 * share**2 * tf.square(h - h_hat) / (h + delta)
        # The first step of a `fit` is at the mean itself, which shows no curvature.
        h = tf.where(tf.reduce_any(old_noise != 0.0), new_h, h)
        new_average = self.beta_1 * tf.convert_to_tensor(averaged)
        new_average += (1.0 - self.beta_1) * gradient
        unbiased = new_average / (1.0 - tf.pow(tf.cast(self.beta_1, dtype), step))
        direction = (unbiased + delta * mean) / (h + delta)
        if self.clip_radius is not None:
            direction = tf.clip_by_value(direction, -self.clip_radius, self.clip_radius)
        mean -= tf.cast(learning_rate, dtype) * direction
        seed = fold(tf.constant([self.seed, index]), tf.cast(step, tf.int32))
        draw = normal(seed, variable.shape, dtype)
        draw /= tf.sqrt(self.num_rows * (h + delta))
        self.assign(averaged, new_average)
        self.assign(hessian, h)
        self.assign(noise, draw)
        self.assign(variable, mean + draw)

    def posterior_scale(self, variable: keras.Variable) -> tf.Tensor:
        """Returns the standard deviation sigma of a variable that was trained."""
        hessian = self._hessians[index_in_optimizer(self, variable)]
        precision = self.num_rows * (tf.convert_to_tensor(hessian) + self._delta)
        return tf.math.rsqrt(precision)

    def finalize_variable_values(self, var_list: list[keras.Variable]) -> None:
        """Sets the variables to the mean of q; `fit` calls it at its end."""
        super().finalize_variable_values(var_list)
        for variable in var_list:
            noise = self._noises[index_in_optimizer(self, variable)]
            variable.assign_sub(noise)
            noise.assign(tf.zeros_like(noise))

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "num_rows": self.num_rows,
            "prior_precision": self.prior_precision,
            "initial_hessian": self.initial_hessian,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "clip_radius": self.clip_radius,
            "seed": self.seed,
        }
