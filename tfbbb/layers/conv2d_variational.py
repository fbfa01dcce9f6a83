"""The convolution of two dimensions: images."""

import keras

from tfbbb.layers.conv_variational import ConvVariational


@keras.saving.register_keras_serializable(package="tfbbb.layers")
class Conv2DVariational(ConvVariational):
    """A convolution over height and width whose kernel and bias have a posterior.

    `output = activation(conv2d(input, kernel) + bias)`, `kernel, bias ~ q`

    All positions of a row share their weights. With `"weight"` all rows of a step share
    them too; with `"flipout"` (Wen et al. 2018, section 4.1) each row has its own, by
    one sign per input channel and one per filter. `"local"` draws each output
    separately, with the mean `conv2d(input, mean)` and the variance
    `conv2d(input^2, sigma^2)` (Kingma et al. 2015). This is an approximation, because
    positions then do not share weights.

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

    Args:
        filters: Number of output channels.
        kernel_size: Height and width of the kernel, one integer or two.
        strides: Steps of the kernel, one integer or two.
        padding: `"valid"` (none) or `"same"`.
        data_format: `"channels_last"` or `"channels_first"`; by default Keras' own.
        dilation_rate: Distance between the inputs that neighbours in the kernel meet,
            one integer or two.
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
        **options: `posterior`, `prior`, `bias_posterior`, `bias_prior`, `estimator`,
            `kl_weight`, `members`, `seed` as for `DenseVariational`. The fan-in is
            `height * width * channels / groups` of the kernel; `estimator="auto"`
            takes `"flipout"` if the posterior allows it.

    Input shape:
        [batch, height, width, channels], or [batch, channels, height, width] with
        `data_format="channels_first"`.

    Output shape:
        [batch, new_height, new_width, filters], or [batch, filters, new_height,
        new_width].

    Raises:
        ValueError: A size is not a positive integer, padding or data format is unknown,
            `groups` does not divide `filters` or the number of channels, strides are
            combined with dilation, or as for `DenseVariational`.
    """

    rank = 2
