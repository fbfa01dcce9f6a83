"""The transposed convolution of two dimensions."""

import keras

from tfbbb.layers.conv_transpose_variational import ConvTransposeVariational


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv2DTransposeVariational(ConvTransposeVariational):
    """A transposed convolution over height and width whose weights have a posterior.

    `output = activation(conv2d_transpose(input, kernel) + bias)`, `kernel, bias ~ q`

    It maps from the output shape of a convolution to its input shape, as the gradient
    of a convolution does. All positions of a row share their weights, as in
    `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv2DTransposeVariational(4, 3, strides=2, kl_weight=0.1)
    >>> layer(np.ones((2, 5, 5, 3))).shape
    TensorShape([2, 11, 11, 4])

    Args:
        filters: Number of output channels.
        kernel_size: Size of the kernel, one integer or two.
        strides: Steps of the kernel in the output, one integer or two.
        padding: `"valid"` or `"same"`.
        output_padding: Number of positions added to the output, less than `strides`;
            one integer or two.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        dilation_rate: Distance between the outputs that neighbours in the kernel meet,
            one integer or two.
        activation: Keras activation, by name or as a function.
        use_bias: Whether a bias is added, one for each filter.
        kernel_initializer: Keras initializer of the kernel's posterior mean.
        bias_initializer: Keras initializer of the bias' posterior mean.
        kernel_regularizer: Keras regularizer of the kernel's posterior mean.
        bias_regularizer: Keras regularizer of the bias' posterior mean.
        activity_regularizer: Keras regularizer of the output.
        kernel_constraint: Keras constraint on the kernel's posterior mean.
        bias_constraint: Keras constraint on the bias' posterior mean.
        **options: As for `Conv2DVariational`. The fan-in is the mean number of inputs
            that an output sums over, `positions of the kernel / product of strides *
            channels`; Keras' initializers count as for a convolution.

    Input shape:
        [batch, height, width, channels], or [batch, channels, height, width]
        with `data_format="channels_first"`.

    Output shape:
        [batch, new_height, new_width, filters], or
        [batch, filters, new_height, new_width].

    Raises:
        ValueError: As for `Conv2DVariational`; or `output_padding` is not smaller than
            `strides`.
    """

    rank = 2
