"""The base of dense and convolutional layers: posteriors of kernel and bias."""

import inspect
from collections.abc import Callable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import keras
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.types import (
    Activation,
    Config,
    Constraint,
    Distribution,
    DType,
    Initializer,
    Options,
    Regularizer,
    Shape,
    Tensor,
)
from tfbbb.lab.compat.tfp_layers.adopted_variable import (
    adopt,
    load_without_adopted,
    track_in_checkpoints,
    variables_of,
)
from tfbbb.lab.compat.tfp_layers.default_distributions import (
    default_mean_field_normal_fn,
    default_multivariate_normal_fn,
)
from tfbbb.lab.compat.tfp_layers.full_precision import floating_dtype
from tfbbb.lab.compat.tfp_layers.function_config import (
    activation_config,
    activity_regularizer_config,
    from_config,
    read_values,
    to_config,
)
from tfbbb.lab.compat.tfp_layers.last_draws import LastDraws
from tfbbb.lab.compat.tfp_layers.variable_reference import VariableReference

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")

# Of `dtype, shape, name, trainable, add_variable_fn`; of `posterior, prior, draw`.
DistributionFunction: TypeAlias = Callable[..., Distribution] | None
DivergenceFunction: TypeAlias = (
    Callable[[Distribution, Distribution, Tensor | None], Tensor] | None
)
TensorFunction: TypeAlias = Callable[[Distribution], Tensor]

FUNCTIONS = (
    "kernel_posterior_fn",
    "kernel_posterior_tensor_fn",
    "kernel_prior_fn",
    "kernel_divergence_fn",
    "bias_posterior_fn",
    "bias_posterior_tensor_fn",
    "bias_prior_fn",
    "bias_divergence_fn",
)


@_register
def sample(distribution: Distribution) -> Tensor:
    """Returns a draw: the default `kernel_posterior_tensor_fn`."""
    return distribution.sample()


@_register
def exact_divergence(q: Distribution, p: Distribution, ignore: Tensor | None) -> Tensor:
    """Returns `KL(q || p)` in closed form: the default `kernel_divergence_fn`."""
    return tfd.kl_divergence(q, p)


DEFAULT_POSTERIOR = default_mean_field_normal_fn()
DEFAULT_BIAS_POSTERIOR = default_mean_field_normal_fn(is_singular=True)
DEFAULT_PRIOR = default_multivariate_normal_fn


class WeightPosterior(keras.Layer):
    """Base of the layers that are linear in a kernel drawn from its posterior.

    A subclass creates its distributions in `build` by `_add_distributions`, and an
    estimator, the other base of a concrete layer, draws the kernel's product with the
    inputs in `_draw`, by means of `_linear(inputs, kernel)`.

    The layer trains and saves each `tf.Variable` that its posteriors and priors read,
    whether or not it comes from `add_variable_fn`.

    Each call adds `kernel_divergence_fn(q, p, kernel)` to the losses, and the same for
    the bias if it has a prior.

    Args:
        activation: Keras activation, by name or as a function.
        activity_regularizer: Penalty on the output.
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
    # Defaults of a class that differ from those of its shared constructor.
    defaults: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        parameters = inspect.signature(cls.__init__).parameters
        cls.__signature__ = inspect.Signature(
            [
                parameter.replace(default=cls.defaults.get(name, parameter.default))
                for name, parameter in parameters.items()
                if name != "self" and (name != "seed" or cls.takes_seed)
            ]
        )
        document_inherited_arguments(cls)

    def __init__(
        self,
        activation: Activation,
        functions: Options,
        seed: int | None,
        kwargs: Options,
    ):
        super().__init__(**kwargs)
        if seed is not None and not self.takes_seed:
            raise TypeError(
                f"{type(self).__name__} has no argument `seed`. Received: seed={seed!r}"
            )
        self.activation = keras.activations.get(activation)
        self.seed = seed
        self._last_draws = LastDraws()
        for name in FUNCTIONS:
            setattr(self, name, functions[name])
        # XLA on CPUs draws random numbers slowly.
        self.supports_jit = False

    @property
    def kernel_posterior_tensor(self) -> Tensor:
        """The kernel that the last call drew, or None.

        Eager code reads the draw of the last eager call, a traced function the draw of
        the last call in the same trace. The same holds for the three attributes below.
        """
        return self._last_draws.get("kernel_posterior_tensor")

    @property
    def kernel_posterior_affine(self) -> Distribution | None:
        """The distribution that the last call drew from instead of a kernel, or None.

        Local reparameterization draws outputs, flipout a perturbation of the kernel.
        """
        return self._last_draws.get("kernel_posterior_affine")

    @property
    def kernel_posterior_affine_tensor(self) -> Tensor:
        """The last draw of `kernel_posterior_affine`, or None."""
        return self._last_draws.get("kernel_posterior_affine_tensor")

    @property
    def bias_posterior_tensor(self) -> Tensor:
        """The bias that the last call drew; None without a bias."""
        return self._last_draws.get("bias_posterior_tensor")

    def add_variable(
        self,
        name: str | None = None,
        shape: Shape = None,
        dtype: DType = None,
        initializer: Initializer = None,
        regularizer: Regularizer = None,
        trainable: bool = True,
        constraint: Constraint = None,
    ) -> VariableReference:
        """Creates a variable that distributions may refer to."""
        variable = self.add_weight(
            name=name,
            shape=() if shape is None else tuple(shape),
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            constraint=constraint,
            # Posterior and divergence stay in full precision.
            autocast=False,
        )
        track_in_checkpoints(self, variable)
        return VariableReference(variable)

    def _add_distributions(self, kernel_shape: tuple, bias_shape: tuple) -> None:
        dtype = floating_dtype(self)
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
            self._last_draws.update(bias_posterior_tensor=bias)
            outputs = self._add_bias(outputs, tf.cast(bias, self.compute_dtype))
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

    def _add_bias(self, outputs: Tensor, bias: Tensor) -> Tensor:
        raise NotImplementedError

    def _sign_shapes(self, input_shape: Shape) -> tuple[Tensor, Tensor | None]:
        """Returns the shapes of flipout's signs of the inputs and of the outputs."""
        raise NotImplementedError

    def _over_space(self, signs: Tensor) -> Tensor:
        """Returns signs in a shape that broadcasts over the axes of space."""
        raise NotImplementedError

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

    def load_own_variables(self, store: MutableMapping[str, Any]) -> None:
        if not load_without_adopted(self, store):
            super().load_own_variables(store)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            **activity_regularizer_config(self),
            "activation": activation_config(self.activation),
            **{name: to_config(getattr(self, name)) for name in FUNCTIONS},
            **({"seed": self.seed} if self.takes_seed else {}),
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        functions = {name: from_config(config[name]) for name in FUNCTIONS}
        return cls(**{**read_values(config), **functions})
