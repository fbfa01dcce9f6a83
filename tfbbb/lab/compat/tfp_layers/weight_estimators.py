"""How the noise of a kernel's posterior reaches the outputs."""

import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.types import Tensor
from tfbbb.lab.compat.tfp_layers.weight_posterior import WeightPosterior

tfd = tfp.distributions


class Reparameterization(WeightPosterior):
    """Draws one kernel per call (Kingma & Welling 2014)."""

    def _draw(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        kernel = self.kernel_posterior_tensor_fn(self.kernel_posterior)
        self._last_draws.update(kernel_posterior_tensor=kernel)
        return self._linear(inputs, tf.cast(kernel, self.compute_dtype)), kernel


class LocalReparameterization(WeightPosterior):
    """Draws the outputs of each row (Kingma, Salimans & Welling 2015)."""

    def _draw(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        kernel = self._normal_kernel()
        dtype = self.variable_dtype
        mean = self._linear(inputs, tf.cast(kernel.loc, self.compute_dtype))
        variance = self._linear(
            # Squares leave the range of float16.
            tf.square(tf.cast(inputs, dtype)),
            tf.square(tf.convert_to_tensor(kernel.scale)),
        )
        # The gradient of the root at zero, the variance of a row of zeros, is infinite.
        positive = variance > 0
        scale = tf.where(positive, tf.sqrt(tf.where(positive, variance, 1)), 0)
        affine = tfd.Normal(tf.cast(mean, dtype), scale)
        outputs = self.kernel_posterior_tensor_fn(affine)
        self._last_draws.update(
            kernel_posterior_affine=affine, kernel_posterior_affine_tensor=outputs
        )
        return tf.cast(outputs, self.compute_dtype), None


class Flipout(WeightPosterior):
    """Draws a perturbation and flips its signs row by row (Wen et al. 2018)."""

    takes_seed = True
    salt = "Flipout"

    def _draw(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        kernel = self._normal_kernel()
        affine = tfd.Normal(tf.zeros_like(kernel.loc), kernel.scale)
        perturbation = self.kernel_posterior_tensor_fn(affine)
        self._last_draws.update(
            kernel_posterior_affine=affine, kernel_posterior_affine_tensor=perturbation
        )
        seeds = tfp.util.SeedStream(self.seed, salt=self.salt)
        sign_into, sign_out_of = (
            self._over_space(
                tfp.random.rademacher(shape, dtype=inputs.dtype, seed=seeds())
            )
            for shape in self._sign_shapes(tf.shape(inputs))
        )
        mean = self._linear(inputs, tf.cast(kernel.loc, self.compute_dtype))
        perturbed = self._linear(
            inputs * sign_into, tf.cast(perturbation, self.compute_dtype)
        )
        return mean + perturbed * sign_out_of, None
