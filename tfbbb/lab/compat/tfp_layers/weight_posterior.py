"""The base of dense and convolutional layers: posteriors of kernel and bias."""

import inspect
from typing import Any, ClassVar

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.types import (
    Config,
    Constraint,
    Distribution,
    DType,
    Initializer,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.adopted_variable import (
    adopt,
    adopted_variable,
    variables_of,
)
from tfbbb.lab.compat.tfp_layers.default_distributions import (
    default_mean_field_normal_fn,
    default_multivariate_normal_fn,
)
from tfbbb.lab.compat.tfp_layers.function_config import (
    ReadsConfig,
    activity_regularizer_config,
    to_config,
)

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")


@_register
def sample(distribution: Distribution) -> Tensor:
    """Returns a draw: the default `kernel_posterior_tensor_fn`."""
    return distribution.sample()


@_register
def exact_divergence(q: Distribution, p: Distribution, ignore: Tensor | None) -> Tensor:
    """Returns `KL(q || p)` in closed form: the default `kernel_divergence_fn`."""
    return tfd.kl_divergence(q, p)


# The arguments that the layers share, in their order, with their defaults.
_SHARED: dict[str, Any] = {
    "activation": None,
    "activity_regularizer": None,
    "trainable": True,
    "kernel_posterior_fn": default_mean_field_normal_fn(),
    "kernel_posterior_tensor_fn": sample,
    "kernel_prior_fn": default_multivariate_normal_fn,
    "kernel_divergence_fn": exact_divergence,
    "bias_posterior_fn": default_mean_field_normal_fn(is_singular=True),
    "bias_posterior_tensor_fn": sample,
    "bias_prior_fn": None,
    "bias_divergence_fn": exact_divergence,
    "seed": None,
}
_FUNCTIONS = tuple(name for name in _SHARED if name.endswith("_fn"))


def known_size(layer: keras.Layer, input_shape: Shape, axis: int) -> int:
    """Returns the size of an axis on which the shapes of a layer's weights depend."""
    size = input_shape[axis]
    if size is None:
        raise ValueError(
            f"The size of axis {axis} of the input of '{layer.name}' must be known. "
            f"Received: input_shape={input_shape}"
        )
    return int(size)


class WeightPosterior(ReadsConfig, keras.Layer):
    """Base of the layers that are linear in a kernel drawn from its posterior.

    A family of layers takes its own arguments, the first ones, in `_set_up`, and
    creates its distributions in `build` by `_add_distributions`. An estimator, the
    other base of a concrete layer, draws the kernel's product with the inputs in
    `_draw`, by means of `_linear(inputs, kernel)`.

    Each call adds `kernel_divergence_fn(q, p, kernel)` to the losses, and the same for
    the bias if it has a prior.

    Args:
        activation: Keras activation, by name or as a function.
        activity_regularizer: Penalty on the output.
        trainable: Whether the variables are trained.
        kernel_posterior_fn: Function of `dtype, shape, name, trainable,
            add_variable_fn` that returns the posterior of the kernel. The layer
            trains and saves each `tf.Variable` that it reads.
        kernel_posterior_tensor_fn: Function of a distribution that returns a draw.
        kernel_prior_fn: As `kernel_posterior_fn`, for the prior.
        kernel_divergence_fn: Function of `posterior, prior, draw` that returns the
            divergence; the draw is None if the layer draws no kernel.
        bias_posterior_fn: As for the kernel; None is no bias.
        bias_posterior_tensor_fn: As for the kernel.
        bias_prior_fn: As for the kernel; None is no prior and no divergence.
        bias_divergence_fn: As for the kernel.
        seed: Integer that fixes the signs.
        **kwargs: Options of `keras.Layer`.
    """

    takes_seed = False
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        _, *own = inspect.signature(cls._set_up).parameters.values()
        parameters = [parameter for parameter in own if parameter.kind is kind]
        parameters += [
            inspect.Parameter(name, kind, default=default)
            for name, default in _SHARED.items()
            if name != "seed" or cls.takes_seed
        ]
        parameters.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
        cls.__signature__ = inspect.Signature(parameters)
        document_inherited_arguments(cls)

    def __init__(self, *args: Any, **kwargs: Any):
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        own = given.arguments
        options = {
            name: own.pop(name) for name in ("activity_regularizer", "trainable")
        }
        super().__init__(**options, **own.pop("kwargs"))
        self.activation = keras.activations.get(own.pop("activation"))
        self.seed = own.pop("seed", None)
        for name in _FUNCTIONS:
            setattr(self, name, own.pop(name))
        # XLA on CPUs draws random numbers slowly.
        self.supports_jit = False
        self._set_up(**own)

    def _set_up(self, *args: Any, **kwargs: Any) -> None:
        """Takes the arguments of the family."""

    def add_variable(
        self,
        name: str | None = None,
        shape: Shape = None,
        dtype: DType = None,
        initializer: Initializer = None,
        regularizer: Regularizer = None,
        trainable: bool = True,
        constraint: Constraint = None,
    ) -> tf.Variable:
        """Creates a variable that distributions may refer to."""
        initial = keras.initializers.get(initializer or "glorot_uniform")
        name_of_dtype = tf.as_dtype(dtype or self.variable_dtype).name
        with tf.init_scope():
            variable = tf.Variable(
                initial(() if shape is None else tuple(shape), dtype=name_of_dtype),
                trainable=trainable,
                name=name,
                constraint=keras.constraints.get(constraint),
            )
        adopt(self, [variable])
        regularizer = keras.regularizers.get(regularizer)
        adopted_variable(variable).regularizer = regularizer
        return variable

    def _add_distributions(self, kernel_shape: tuple, bias_shape: tuple) -> None:
        dtype = tf.as_dtype(self.variable_dtype)
        for weight, shape in (("kernel", kernel_shape), ("bias", bias_shape)):
            for kind in ("posterior", "prior"):
                make = getattr(self, f"{weight}_{kind}_fn")
                name = f"{weight}_{kind}"
                # Constants of a prior must outlive the graph that is traced when the
                # layer is first called.
                with tf.init_scope():
                    distribution = make and make(
                        dtype, list(shape), name, self.trainable, self.add_variable
                    )
                setattr(self, name, distribution)
                # At once, for the order of the weights in legacy files.
                adopt(self, variables_of(distribution))

    def call(self, inputs: Tensor) -> Tensor:
        inputs = tf.cast(inputs, self.compute_dtype)
        outputs, kernel = self._draw(inputs)
        bias = None
        if self.bias_posterior is not None:
            bias = self.bias_posterior_tensor_fn(self.bias_posterior)
            outputs += self._over_space(tf.cast(bias, self.compute_dtype)[tf.newaxis])
        self._add_divergence("kernel", kernel)
        self._add_divergence("bias", bias)
        return self.activation(outputs)

    def _add_divergence(self, weight: str, draw: Tensor | None) -> None:
        function = getattr(self, f"{weight}_divergence_fn")
        posterior = getattr(self, f"{weight}_posterior")
        prior = getattr(self, f"{weight}_prior")
        if function is None or posterior is None or prior is None:
            return
        self.add_loss(tf.convert_to_tensor(function(posterior, prior, draw)))

    def _draw(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        """Returns the product of a random kernel, and the kernel if one is drawn."""
        raise NotImplementedError

    def _linear(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Returns the product of inputs and kernel, or their convolution."""
        raise NotImplementedError

    def _sign_shapes(self, input_shape: Shape) -> tuple[Tensor, Tensor]:
        """Returns the shapes of flipout's signs of the inputs and of the outputs."""
        raise NotImplementedError

    def _over_space(self, values: Tensor) -> Tensor:
        """Returns values of rows and channels so that they broadcast over space."""
        return values

    def _normal_kernel(self) -> tfp.distributions.Normal:
        """Returns the posterior of the kernel, element by element."""
        posterior = self.kernel_posterior
        if not isinstance(posterior, tfd.Independent) or not isinstance(
            posterior.distribution, tfd.Normal
        ):
            raise TypeError(
                f"`{type(self).__name__}` requires a `kernel_posterior_fn` that "
                "returns a `tfd.Independent(tfd.Normal)`. "
                f"Received: {posterior!r}"
            )
        return posterior.distribution

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            **activity_regularizer_config(self),
            "activation": to_config(self.activation),
            **{name: to_config(getattr(self, name)) for name in _FUNCTIONS},
            **({"seed": self.seed} if self.takes_seed else {}),
        }


class Reparameterization(WeightPosterior):
    """Draws one kernel per call (Kingma & Welling 2014)."""

    def _draw(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        kernel = self.kernel_posterior_tensor_fn(self.kernel_posterior)
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
        outputs = self.kernel_posterior_tensor_fn(
            tfd.Normal(tf.cast(mean, dtype), scale)
        )
        return tf.cast(outputs, self.compute_dtype), None


class Flipout(WeightPosterior):
    """Draws a perturbation and flips its signs row by row (Wen et al. 2018)."""

    takes_seed = True
    salt = "Flipout"

    def _draw(self, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
        kernel = self._normal_kernel()
        perturbation = self.kernel_posterior_tensor_fn(
            tfd.Normal(tf.zeros_like(kernel.loc), kernel.scale)
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
