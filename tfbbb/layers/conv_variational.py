"""Convolutions, and transposed ones, in one, two and three dimensions."""

import math

import keras
import tensorflow as tf
from keras import ops

from tfbbb.base.batch_layout import dimensions
from tfbbb.base.types import Tensor
from tfbbb.layers.convolution import Convolution


class ConvVariational(Convolution):
    """Base of `Conv1DVariational`, `Conv2DVariational` and `Conv3DVariational`."""

    def convolve(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return ops.conv(
            ops.pad(inputs, self._causal_padding()) if self._is_causal else inputs,
            kernel,
            strides=self.strides,
            padding="valid" if self._is_causal else self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )

    @property
    def takes_channels_beside(self) -> bool:
        """Whether `convolve_beside` can do the work of `linear`.

        TensorFlow must know the shape of a dilated kernel when it builds a graph.
        """
        return (
            self.rank < 3
            and self.data_format == "channels_last"
            and max(self.dilation_rate) == 1
            # A subclass may convolve in another way.
            and type(self).convolve is ConvVariational.convolve
            and type(self).linear is ConvVariational.linear
        )

    def arranged(self, draws: dict[str, Tensor]) -> dict[str, Tensor]:
        # The filters of all draws beside each other: [..., draws * filters].
        kernels = draws["kernel"]
        if not self.takes_channels_beside or len(kernels.shape) == self.rank + 2:
            return draws
        count, *shape, filters = dimensions(kernels, 0)
        axes = [*range(1, self.rank + 2), 0, self.rank + 2]
        beside = tf.reshape(tf.transpose(kernels, axes), [*shape, count * filters])
        if self.bias is None:
            return {"kernel": beside}
        return {"kernel": beside, "bias": tf.reshape(draws["bias"], [-1])}

    def convolve_beside(self, inputs: Tensor, draws: dict[str, Tensor]) -> tf.Tensor:
        """Returns pre-activations [n, ..., draws * filters] by a grouped convolution.

        Inputs are [n, ..., draws * channels], or [n, ..., channels] where all draws
        share them.
        """
        kernel = draws["kernel"]
        is_shared = inputs.shape[-1] == self.groups * kernel.shape[-2]
        if is_shared and self.groups > 1:
            count = tf.shape(kernel)[-1] // self.filters
            inputs = tf.tile(inputs, [*[1] * (self.rank + 1), count])
        if self._is_causal:
            inputs = tf.pad(inputs, self._causal_padding())
        # Keras would compile grouped channels by XLA, again for each number of rows.
        convolution = tf.nn.conv1d if self.rank == 1 else tf.nn.conv2d
        outputs = convolution(
            inputs,
            kernel,
            self.strides[0] if self.rank == 1 else self.strides,
            "VALID" if self._is_causal else self.padding.upper(),
        )
        if self.bias is None:
            return outputs
        if is_shared and self.groups == 1:
            # TensorFlow fuses it with the convolution and the activation.
            return tf.nn.bias_add(outputs, draws["bias"])
        # For grouped channels TensorFlow has such a kernel with oneDNN only.
        return outputs + draws["bias"]

    @property
    def _is_causal(self) -> bool:
        return self.padding == "causal"

    def _causal_padding(self) -> list[tuple[int, int]]:
        paddings = [(0, 0)] * 3
        axis = 1 if self.data_format == "channels_last" else 2
        paddings[axis] = (self.dilation_rate[0] * (self.kernel_size[0] - 1), 0)
        return paddings


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv1DVariational(ConvVariational, keras.layers.Conv1D):
    """A convolution over the steps of a sequence whose weights have a posterior.

    `output = activation(conv1d(input, kernel) + bias)`, `kernel, bias ~ q`

    All steps of a row share its weights, as in `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv1DVariational(4, 3, padding="causal", kl_weight=0.1)
    >>> layer(np.ones((2, 10, 3))).shape
    TensorShape([2, 10, 4])

    Input shape:
        [batch, steps, channels].

    Output shape:
        [batch, new_steps, filters].
    """


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv2DVariational(ConvVariational, keras.layers.Conv2D):
    """A convolution over height and width whose kernel and bias have a posterior.

    `output = activation(conv2d(input, kernel) + bias)`, `kernel, bias ~ q`

    All positions of a row share their weights. With `"weight"` all rows of a step share
    them too; with `"flipout"` (Wen et al. 2018, section 4.1) each row has its own, by
    one sign per input channel and one per filter. `"local"` draws each output
    separately, with the mean `conv2d(input, mean)` and the variance
    `conv2d(input^2, sigma^2)` (Kingma et al. 2015). This is an approximation, because
    positions then do not share weights. `"auto"` takes `"flipout"` if the posterior
    allows it. The fan-in is `height * width * channels / groups` of the kernel.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> model = keras.Sequential([
    ...     keras.Input((8, 8, 1)),
    ...     tfbbb.layers.Conv2DVariational(4, 3, activation="relu", kl_weight=1 / 60),
    ...     keras.layers.GlobalAveragePooling2D(),
    ...     tfbbb.layers.DenseVariational(1, kl_weight=1 / 60),
    ... ])
    >>> model(np.ones((2, 8, 8, 1))).shape
    TensorShape([2, 1])

    Input shape:
        [batch, height, width, channels].

    Output shape:
        [batch, new_height, new_width, filters].
    """


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv3DVariational(ConvVariational, keras.layers.Conv3D):
    """A convolution over volumes whose kernel and bias have a posterior.

    `output = activation(conv3d(input, kernel) + bias)`, `kernel, bias ~ q`

    All positions of a row share its weights, as in `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv3DVariational(4, (1, 2, 2), kl_weight=0.1)
    >>> layer(np.ones((2, 3, 5, 5, 1))).shape
    TensorShape([2, 3, 4, 4, 4])

    Input shape:
        [batch, depth, height, width, channels].

    Output shape:
        [batch, new_depth, new_height, new_width, filters].
    """


class ConvTransposeVariational(Convolution):
    """Base of the transposed convolutions.

    Args:
        output_padding: Number of positions added to the output, less than `strides`;
            one integer, or one for each dimension.
    """

    def fan_in(self, kernel_shape: tuple[int, ...]) -> int:
        # An output uses only every `strides`-th position of the kernel.
        met = math.prod(self.kernel_size) / math.prod(self.strides)
        return max(1, round(met * kernel_shape[-1]))

    def convolve(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        return ops.conv_transpose(
            inputs,
            kernel,
            strides=self.strides,
            padding=self.padding,
            output_padding=self.output_padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv1DTransposeVariational(
    ConvTransposeVariational, keras.layers.Conv1DTranspose
):
    """A transposed convolution over sequences whose weights have a posterior.

    `output = activation(conv1d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    See `Conv2DTransposeVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv1DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 5, 3))).shape
    TensorShape([2, 11, 4])

    Input shape:
        [batch, steps, channels].

    Output shape:
        [batch, new_steps, filters].
    """


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv2DTransposeVariational(
    ConvTransposeVariational, keras.layers.Conv2DTranspose
):
    """A transposed convolution over height and width whose weights have a posterior.

    `output = activation(conv2d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    It maps from the output shape of a convolution to its input shape, as the gradient
    of a convolution does. All positions of a row share their weights, as in
    `Conv2DVariational`. The fan-in is the mean number of inputs that an output sums
    over, `positions of the kernel / product of strides * channels`; Keras' initializers
    count as for a convolution.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv2DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 5, 5, 3))).shape
    TensorShape([2, 11, 11, 4])

    Input shape:
        [batch, height, width, channels].

    Output shape:
        [batch, new_height, new_width, filters].
    """


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv3DTransposeVariational(
    ConvTransposeVariational, keras.layers.Conv3DTranspose
):
    """A transposed convolution over volumes whose weights have a posterior.

    `output = activation(conv3d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    See `Conv2DTransposeVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv3DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 2, 2, 2, 3))).shape
    TensorShape([2, 5, 5, 5, 4])

    Input shape:
        [batch, depth, height, width, channels].

    Output shape:
        [batch, new_depth, new_height, new_width, filters].
    """
