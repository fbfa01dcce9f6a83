"""Layers that make a known distribution of a vector of parameters."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import keras
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.private_apis import give_bernoulli_parameters
from tfbbb.base.types import Config, Distribution, DType, Shape, Tensor
from tfbbb.lab.compat.tfp_layers.distribution_lambda import DistributionLambda
from tfbbb.lab.compat.tfp_layers.distribution_tensor import as_distribution
from tfbbb.lab.compat.tfp_layers.function_config import to_config

tfd = tfp.distributions

_register = keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
_KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Parametric(DistributionLambda):
    """A layer that makes the distribution of `type(self).new(params, **options)`.

    The options are the arguments of `new`. The constructor takes them by the same
    names, but `dtype` as `sample_dtype`, and `convert_to_tensor_fn` with them; the
    layer's configuration holds them.

    Args:
        event_shape: Shape of one draw: an integer or a vector of integers.
        convert_to_tensor_fn: Function that converts the distribution to a tensor, or
            its name: see `DistributionLambda`.
        sample_dtype: Dtype of draws; the default is the dtype of the parameters.
        validate_args: Whether to check parameters and values in every call.
        **kwargs: Options of `keras.Layer`.
    """

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        arguments = dict(inspect.signature(cls.new).parameters)
        last = [
            inspect.Parameter(
                "convert_to_tensor_fn", _KIND, default=tfd.Distribution.sample
            ),
            *(
                arguments.pop(name).replace(name=new_name)
                for name, new_name in (
                    ("dtype", "sample_dtype"),
                    ("validate_args",) * 2,
                )
                if name in arguments
            ),
            inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
        ]
        _, *own = arguments.values()
        cls.__signature__ = inspect.Signature([*own, *last])
        document_inherited_arguments(cls)

    def __init__(self, *args: Any, **kwargs: Any):
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        options = given.arguments
        of_layer = options.pop("kwargs")
        conversion = options.pop("convert_to_tensor_fn")
        super().__init__(self._make, conversion, **of_layer)
        self._options = options

    def build(self, input_shape: Shape) -> None:
        # Keras would call the layer to build a layer of components, which needs none.
        self.built = True

    def _make(self, params: Tensor) -> Distribution:
        names = {"sample_dtype": "dtype"}
        options = {names.get(name, name): v for name, v in self._options.items()}
        return type(self).new(tf.convert_to_tensor(params), **options)

    @staticmethod
    def new(params: Tensor, *args: Any, **kwargs: Any) -> Distribution:
        """Returns the distribution of a tensor of parameters."""
        raise NotImplementedError

    def get_config(self) -> Config:
        config = super(DistributionLambda, self).get_config()
        options = {name: _plain(value) for name, value in self._options.items()}
        return {**config, **self._conversion_config(), **options}


class _Independent(Parametric):
    """Base of the layers of independent variables of one family."""

    # Parameters of one variable, and the distributions that they make.
    num_params = 1
    family: ClassVar[Callable[..., Distribution]]

    @classmethod
    def new(
        cls, params: Tensor, event_shape: Shape = (), validate_args: bool = False
    ) -> Distribution:
        parts = tf.split(params, cls.num_params, axis=-1)
        base = cls.family(
            *(_with_event_shape(part, event_shape) for part in parts),
            validate_args=validate_args,
        )
        rank = np.asarray(event_shape).size
        return tfd.Independent(base, rank, validate_args=validate_args)

    @classmethod
    def params_size(cls, event_shape: Shape = ()) -> int:
        """Returns the number of parameters of one distribution."""
        # A Python integer, as Keras takes no other for a number of units.
        return cls.num_params * int(np.prod(np.asarray(event_shape, np.int64)))


@_register
class IndependentBernoulli(_Independent):
    """Independent Bernoulli variables of `prod(event_shape)` logits."""

    @classmethod
    def new(  # type: ignore[override]
        cls,
        params: Tensor,
        event_shape: Shape = (),
        dtype: DType = None,
        validate_args: bool = False,
    ) -> Distribution:
        bernoulli = tfd.Bernoulli(
            logits=_with_event_shape(params, event_shape),
            dtype=tf.as_dtype(dtype or params.dtype),
            validate_args=validate_args,
        )
        distribution = tfd.Independent(
            bernoulli, np.asarray(event_shape).size, validate_args=validate_args
        )
        # For `convert_to_tensor_fn=tfd.Bernoulli.logits`.
        give_bernoulli_parameters(distribution, bernoulli)
        return distribution


@_register
class IndependentLogistic(_Independent):
    """Independent logistic variables of `2 * prod(event_shape)` parameters.

    The first half are the locations, `softplus` of the second half the scales.
    """

    num_params = 2

    @staticmethod
    def family(loc: Tensor, scale: Tensor, **options: Any) -> Distribution:
        return tfd.Logistic(loc, tf.math.softplus(scale), **options)


@_register
class IndependentNormal(_Independent):
    """Independent normal variables of `2 * prod(event_shape)` parameters.

    The first half are the means, `softplus` of the second half the standard deviations.

    Example:

    >>> import keras
    >>> size = IndependentNormal.params_size([2])
    >>> model = keras.Sequential([keras.layers.Dense(size), IndependentNormal([2])])
    >>> model(keras.ops.ones((5, 3))).event_shape
    TensorShape([2])
    """

    num_params = 2

    @staticmethod
    def family(loc: Tensor, scale: Tensor, **options: Any) -> Distribution:
        return tfd.Normal(loc, tf.math.softplus(scale), **options)


@_register
class IndependentPoisson(_Independent):
    """Independent Poisson variables of `prod(event_shape)` log rates."""

    @staticmethod
    def family(log_rate: Tensor, **options: Any) -> Distribution:
        return tfd.Poisson(log_rate=log_rate, **options)


@_register
class MultivariateNormalTriL(Parametric):
    """A normal vector with a full covariance: `N(loc, L @ L.T)`.

    Its `d + d * (d + 1) / 2` parameters are the mean and the lower triangle of L, whose
    diagonal is `softplus(params) + 1e-5`.

    Example:

    >>> import keras
    >>> size = MultivariateNormalTriL.params_size(2)
    >>> layer = MultivariateNormalTriL(2, convert_to_tensor_fn="mean")
    >>> layer(keras.ops.ones((7, size))).shape
    TensorShape([7, 2])

    Args:
        event_size: Length d of the vector.
    """

    @staticmethod
    def new(
        params: Tensor, event_size: int, validate_args: bool = False
    ) -> Distribution:
        lower_triangle = tfp.bijectors.FillScaleTriL(
            diag_shift=np.array(1e-5, params.dtype.as_numpy_dtype),
            validate_args=validate_args,
        )
        return tfd.MultivariateNormalTriL(
            loc=params[..., :event_size],
            scale_tril=lower_triangle(params[..., event_size:]),
            validate_args=validate_args,
        )

    @staticmethod
    def params_size(event_size: int) -> int:
        """Returns the number of parameters of one distribution."""
        return event_size + event_size * (event_size + 1) // 2


@_register
class OneHotCategorical(Parametric):
    """One of d classes, one-hot encoded, of d logits.

    Args:
        event_size: Number d of classes.
    """

    @staticmethod
    def new(
        params: Tensor,
        event_size: int,
        dtype: DType = None,
        validate_args: bool = False,
    ) -> Distribution:
        return tfd.OneHotCategorical(
            logits=params,
            dtype=tf.as_dtype(dtype or params.dtype),
            validate_args=validate_args,
        )

    @staticmethod
    def params_size(event_size: int) -> int:
        """Returns the number of parameters of one distribution."""
        return event_size


@_register
class MixtureSameFamily(Parametric):
    """A mixture of k distributions of one family.

    The first k parameters are the mixture's logits; the rest, reshaped to
    [..., k, size], go through `component_layer`.

    Args:
        num_components: Number k of components.
        component_layer: Layer or function that makes the components of a tensor
            [..., k, size], e.g. `IndependentNormal(event_shape)`.
    """

    @staticmethod
    def new(
        params: Tensor,
        num_components: int,
        component_layer: Callable[[Tensor], Distribution],
        validate_args: bool = False,
    ) -> Distribution:
        shape = tf.concat([tf.shape(params)[:-1], [num_components, -1]], axis=0)
        components = component_layer(tf.reshape(params[..., num_components:], shape))
        return tfd.MixtureSameFamily(
            tfd.Categorical(logits=params[..., :num_components]),
            as_distribution(components),
        )

    @staticmethod
    def params_size(num_components: int, component_params_size: int) -> int:
        """Returns the number of parameters of one distribution."""
        return num_components * (1 + component_params_size)


class _Mixture(Parametric):
    """Base of the mixtures with independent components.

    Args:
        num_components: Number of components.
    """

    component: ClassVar[type[_Independent]]

    @classmethod
    def new(
        cls,
        params: Tensor,
        num_components: int,
        event_shape: Shape = (),
        validate_args: bool = False,
    ) -> Distribution:
        return MixtureSameFamily.new(
            params,
            num_components,
            lambda t: cls.component.new(t, event_shape, validate_args),
        )

    @classmethod
    def params_size(cls, num_components: int, event_shape: Shape = ()) -> int:
        """Returns the number of parameters of one distribution."""
        return num_components * (1 + cls.component.params_size(event_shape))


@_register
class MixtureNormal(_Mixture):
    """A mixture of independent normal variables: see `IndependentNormal`."""

    component = IndependentNormal


@_register
class MixtureLogistic(_Mixture):
    """A mixture of independent logistic variables: see `IndependentLogistic`."""

    component = IndependentLogistic


def _with_event_shape(params: tf.Tensor, event_shape: Shape) -> tf.Tensor:
    """Reshapes [..., prod(event_shape)] to [..., *event_shape]."""
    sizes = np.asarray(event_shape, np.int32).reshape(-1)
    return tf.reshape(params, tf.concat([tf.shape(params)[:-1], sizes], axis=0))


def _plain(value: object) -> object:
    """Returns an option as JSON."""
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return value.as_list()
    if tf.is_tensor(value) or isinstance(value, np.ndarray | np.generic):
        return np.asarray(value).tolist()
    if callable(value):
        return to_config(value)
    return list(value) if isinstance(value, tuple) else value
