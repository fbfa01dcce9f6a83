"""A frozen layer with a low-rank adapter."""

from typing import Any

import keras
import numpy as np

from tfbbb.base.types import ArrayLike, Config, Options, Tensor

# What the first factor of a layer of this class keeps of its config, and the argument
# that is the rank.
_CONVOLUTION = ("kernel_size", "strides", "padding", "dilation_rate", "data_format")
_KEPT: dict[type[keras.Layer], tuple[tuple[str, ...], str]] = {
    keras.layers.Dense: ((), "units"),
    keras.layers.Conv1D: (_CONVOLUTION, "filters"),
    keras.layers.Conv2D: (_CONVOLUTION, "filters"),
    keras.layers.Conv3D: (_CONVOLUTION, "filters"),
    keras.layers.Embedding: (("input_dim", "mask_zero"), "output_dim"),
}


@keras.saving.register_keras_serializable("tfbbb")
class Adapted(keras.layers.Layer):
    """A frozen layer with a low-rank adapter (LoRA, Hu et al. 2022).

        activation(W * x + b + up(down * x)),   down [..., r], up [r, outputs]

    where `*` is the product or the convolution of the layer. `tfbbb.adapters.add` makes
    these layers, and `tfbbb.adapters.merge` adds `down up` to W. `up` starts at 0, so
    that the network starts as it was.

    Example:

    >>> import keras, tfbbb
    >>> network = keras.Sequential([
    ...     keras.Input((9,)), keras.layers.Dense(20, "relu"), keras.layers.Dense(3)
    ... ])
    >>> adapted = tfbbb.adapters.add(network, rank=2).layers[0]
    >>> [tuple(weight.shape) for weight in adapted.trainable_weights]
    [(9, 2), (2, 20)]

    Args:
        layer: The frozen layer, without its activation.
        down: The first factor, a layer of r outputs without a bias; with a posterior
            after `tfbbb.convert`.
        up: The second factor, a `Dense` without a bias, without a posterior.
        activation: The activation of the layer.
        **kwargs: Options of `keras.layers.Layer`.
    """

    # See `tfbbb.layers.sharing.calls_per_pass`.
    calls_layers_once = True

    def __init__(
        self,
        layer: keras.Layer,
        down: keras.Layer,
        up: keras.Layer,
        activation: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.layer, self.down, self.up = (
            keras.saving.deserialize_keras_object(each)
            if isinstance(each, dict)
            else each
            for each in (layer, down, up)
        )
        self.activation = keras.activations.get(activation)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        for each in (self.layer, self.down):
            if not each.built:
                each.build(input_shape)
        if not self.up.built:
            self.up.build(self.down.compute_output_shape(input_shape))

    def call(self, inputs: Tensor) -> Tensor:
        return self.activation(self.layer(inputs) + self.up(self.down(inputs)))

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> Any:
        return self.layer.compute_output_shape(input_shape)

    def compute_mask(self, inputs: Tensor, previous_mask: Any = None) -> Any:
        return self.layer.compute_mask(inputs, previous_mask)

    def get_config(self) -> Config:
        layers = {"layer": self.layer, "down": self.down, "up": self.up}
        return {
            **super().get_config(),
            **{
                name: keras.saving.serialize_keras_object(layer)
                for name, layer in layers.items()
            },
            "activation": keras.activations.serialize(self.activation),
        }

    def plain(self) -> keras.Layer:
        """Returns a new layer like the frozen one, with the activation, not built."""
        config = {**self.layer.get_config(), "name": self.name, "trainable": True}
        if hasattr(self.layer, "activation"):
            config["activation"] = self.activation
        return type(self.layer)(**config)

    def merged_weights(self) -> list[ArrayLike]:
        """Returns the weights of `plain`: W + down up, and the bias."""
        kernel, *bias = self.layer.weights
        product = np.tensordot(self.down.weights[0], self.up.weights[0], axes=1)
        return [np.asarray(kernel) + product, *bias]


def reason_without_adapter(layer: keras.Layer) -> str:
    """Returns why a layer has no low-rank adapter, or ""."""
    if not layer.weights:
        return "no weights"
    if type(layer) not in _KEPT:
        return "no adapter for its class"
    if getattr(layer, "groups", 1) != 1:
        return "its channels are in groups"
    if getattr(layer, "data_format", None) == "channels_first":
        return "its channels come first"
    return ""


def adapted(layer: keras.Layer, config: Options, rank: int) -> Adapted:
    """Returns a new layer with an adapter, not built."""
    kind = type(layer)
    kept, width = _KEPT[kind]
    name, own = config["name"], dict(config)
    activation = own.pop("activation", "linear")
    common: Options = {"dtype": config["dtype"]}
    if kind is not keras.layers.Embedding:
        common |= {"use_bias": False}
        own["activation"] = "linear"
    options = {key: config[key] for key in kept}
    initializer = "embeddings" if kind is keras.layers.Embedding else "kernel"
    options[f"{initializer}_initializer"] = "he_uniform"
    return Adapted(
        kind(**{**own, "name": f"{name}_frozen", "trainable": False}),
        kind(**{width: rank}, name=f"{name}_down", **options, **common),
        keras.layers.Dense(
            config[width],
            use_bias=False,
            kernel_initializer="zeros",
            name=f"{name}_up",
            dtype=config["dtype"],
        ),
        activation,
        name=name,
        dtype=config["dtype"],
    )
