"""The convolution of three dimensions: volumes, films."""

import keras

from tfbbb.layers.conv_variational import ConvVariational


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv3DVariational(ConvVariational):
    """A convolution over volumes whose kernel and bias have a posterior.

    `output = activation(conv3d(input, kernel) + bias)`, `kernel, bias ~ q`

    All positions of a row share its weights, as in `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv3DVariational(4, (1, 2, 2), kl_weight=0.1)
    >>> layer(np.ones((2, 3, 5, 5, 1))).shape
    TensorShape([2, 3, 4, 4, 4])

    Args:
        filters: Number of output channels.
        kernel_size: Depth, height and width of the kernel, one integer or three.
        strides: Steps of the kernel, one integer or three.
        padding: `"valid"` (none) or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        dilation_rate: Distance between the inputs that neighbours in the kernel meet,
            one integer or three.
        groups: Number of groups of channels that are convolved separately.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added, one for each filter.
        kernel_initializer: Keras initializer of the kernel's posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        kernel_regularizer: Keras regularizer of the kernel's posterior mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        kernel_constraint: Keras constraint on the kernel's posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
        **options: As for `Conv2DVariational`.

    Input shape:
        [batch, depth, height, width, channels], or [batch, channels, depth, height,
        width] with `data_format="channels_first"`.

    Output shape:
        [batch, new_depth, new_height, new_width, filters], or [batch, filters,
        new_depth, new_height, new_width].

    Raises:
        ValueError: As for `Conv2DVariational`.
    """

    rank = 3
