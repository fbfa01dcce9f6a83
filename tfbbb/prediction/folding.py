"""How samples are folded into a tensor: among its rows, or among its channels.

A convolution with one kernel for each sample is one convolution of grouped channels,
for which all samples of a row are beside each other: [rows, ..., samples * channels].
Operations that treat every channel alike leave the samples there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import keras
import tensorflow as tf
from keras import activations

from tfbbb.base.batch_layout import dimensions, merge_leading, split_leading
from tfbbb.base.types import Tensor
from tfbbb.layers.conv_variational import ConvVariational
from tfbbb.layers.linear_variational import LinearVariationalLayer


@dataclass(frozen=True)
class Folding:
    """Where the samples of a tensor are."""

    # Whether they are in the leading axis, [samples * rows, ...].
    in_rows: bool = False
    # The number of channels of one sample if the samples are in the last axis, [rows,
    # ..., samples * channels]; else 0.
    channels: int = 0

    @property
    def is_folded(self) -> bool:
        """Whether the tensor has samples."""
        return self.in_rows or self.channels > 0


UNFOLDED = Folding()
IN_ROWS = Folding(in_rows=True)

# Keras' functions of each unit alone.
ELEMENTWISE_ACTIVATIONS = set(filter(callable, vars(activations).values())) - {
    *(activations.softmax, activations.log_softmax, activations.sparsemax),
    activations.glu,
}
# Each output element depends on the input elements of its own channel alone, in the
# same way for every channel.
_CHANNEL_BY_CHANNEL = {
    *(keras.layers.Dropout, keras.layers.ELU, keras.layers.LeakyReLU),
    keras.layers.ReLU,
    *(
        getattr(keras.layers, f"{kind}{rank}D")
        for kind in (
            *("AveragePooling", "Cropping", "GlobalAveragePooling", "GlobalMaxPooling"),
            *("MaxPooling", "SpatialDropout", "UpSampling", "ZeroPadding"),
        )
        for rank in (1, 2)
    ),
}
_ELEMENT_BY_ELEMENT = (
    keras.layers.Add,
    keras.layers.Average,
    keras.layers.Maximum,
    keras.layers.Minimum,
    keras.layers.Multiply,
    keras.layers.Subtract,
)


def folds_channels(operation: keras.Operation) -> bool:
    """Whether a layer convolves all samples at once, channels beside each other."""
    return (
        isinstance(operation, ConvVariational)
        # The pass does the work of `call`.
        and type(operation).call is LinearVariationalLayer.call
        and operation.takes_channels_beside
        and operation.activation in ELEMENTWISE_ACTIVATIONS
    )


def keeps_channels(operation: keras.Operation, inputs: Sequence[Tensor]) -> bool:
    """Whether an operation may run with the samples in the channels of its inputs."""
    kind = type(operation)
    if kind is keras.layers.Activation:
        return operation.activation in ELEMENTWISE_ACTIVATIONS
    if kind in _ELEMENT_BY_ELEMENT:
        return len({len(tensor.shape) for tensor in inputs}) == 1
    if kind is keras.layers.BatchNormalization:
        return operation.axis in (-1, len(inputs[0].shape) - 1)
    last = getattr(operation, "data_format", "channels_last") == "channels_last"
    return kind in _CHANNEL_BY_CHANNEL and last


def without_rows(inputs: Tensor, samples: int | Tensor) -> tf.Tensor:
    """Returns [samples * rows, ..., channels] as [rows, ..., samples * channels]."""
    split = split_leading(inputs, samples)
    _, *rest, channels = dimensions(split, 0)
    axes = [*range(1, len(rest) + 1), 0, len(rest) + 1]
    return tf.reshape(tf.transpose(split, axes), [*rest, samples * channels])


def without_channels(inputs: Tensor, samples: int | Tensor, channels: int) -> tf.Tensor:
    """Returns [rows, ..., samples * channels] as [samples * rows, ..., channels]."""
    *before, _ = dimensions(inputs, 0)
    split = tf.reshape(inputs, [*before, samples, channels])
    rank = len(before)
    return merge_leading(tf.transpose(split, [rank, *range(rank), rank + 1]))


def normalized(
    layer: keras.layers.BatchNormalization, inputs: Tensor, channels: int
) -> tf.Tensor:
    """Returns the outputs of a layer that has variables for each channel.

    For the layer, the samples are more positions: [..., samples * channels] is, in
    memory, [..., samples, channels].
    """
    before = dimensions(inputs, 0)[:-2]
    outputs = layer(tf.reshape(inputs, [*before, -1, channels]))
    return tf.reshape(outputs, tf.shape(inputs))
