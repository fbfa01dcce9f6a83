"""The convolution of one dimension: sequences."""

import keras

from tfbbb.layers.conv_variational import ConvVariational


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv1DVariational(ConvVariational):
    """A convolution over the steps of a sequence whose weights have a posterior.

    `output = activation(conv1d(input, kernel) + bias)`, `kernel, bias ~ q`

    All steps of a row share its weights, as in `Conv2DVariational`.

    Example:

    >>> import numpy as np, tfbbb
    >>> layer = tfbbb.layers.Conv1DVariational(4, 3, padding="causal", kl_weight=0.1)
    >>> layer(np.ones((2, 10, 3))).shape
    TensorShape([2, 10, 4])

    Args:
        filters: Number of output channels.
        kernel_size: Number of steps of the kernel.
        strides: Steps of the kernel.
        padding: `"valid"` (none), `"same"`, or `"causal"`: an output sees no later
            inputs.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        dilation_rate: Distance between the inputs that neighbours in the kernel meet.
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
        [batch, steps, channels], or [batch, channels, steps] with
        `data_format="channels_first"`.

    Output shape:
        [batch, new_steps, filters], or [batch, filters, new_steps].

    Raises:
        ValueError: As for `Conv2DVariational`.
    """

    rank = 1
    paddings = ("valid", "same", "causal")
