"""Weights of a legacy model with `tfp.layers` in a model of Keras 3."""

from pathlib import Path

import keras

from tfbbb.lab.compat.legacy_weights.assignment import Assignment, assignments
from tfbbb.lab.compat.legacy_weights.layer_weights import LegacyModel, leaf_layers
from tfbbb.lab.compat.legacy_weights.source import read_source


def load_tfp_weights(
    legacy_model_or_h5: str | Path | LegacyModel, model: keras.Model
) -> None:
    """Copies the weights of a legacy model with `tfp.layers` into a Keras 3 model.

    Layers correspond by name if the model has all of the legacy names, else by their
    order. A layer of `tfbbb.lab.compat.tfp_layers` takes the weights as they are. A
    variational layer of `tfbbb.layers` with mean-field posteriors takes the means and,
    as it keeps the logarithm of the standard deviation,

        log_scale = log(softplus(untransformed_scale) + eps)

    with `eps` the resolution of float32. A bias that is a point, the default of
    `tfp.layers`, becomes the mean of the layer's bias, with a standard deviation of
    `eps` unless its posterior is a point, too.

    Nothing is written unless everything fits.

    Example:

    >>> import keras, numpy as np, tf_keras, tensorflow_probability as tfp, tfbbb
    >>> from tfbbb.lab.compat.load_tfp_weights import load_tfp_weights
    >>> legacy = tf_keras.Sequential([tfp.layers.DenseFlipout(2)])
    >>> legacy.build((None, 3))
    >>> model = keras.Sequential([
    ...     keras.Input((3,)), tfbbb.layers.DenseVariational(2, kl_weight=1.0)])
    >>> load_tfp_weights(legacy, model)
    >>> theirs = legacy.layers[0].kernel_posterior.mean()
    >>> np.allclose(model.layers[0].kernel.mean, theirs)
    True

    Args:
        legacy_model_or_h5: A model of legacy Keras (`tf_keras`), or the path of an HDF5
            file that it wrote by `save_weights` or `save`. A file `*.weights.h5` has
            no names of weights: the model must have the structure of the legacy one,
            of layers of `tfbbb.lab.compat.tfp_layers` and of Keras.
        model: The model to write to, built.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file holds no weights of Keras, the model is not built, the
            number of layers or weights or a shape differs, or a layer cannot represent
            the legacy layer's posterior.
    """
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a Keras 3 model that has been built: give it an input "
            f"shape, or call it once. Received: model={model!r}"
        )
    if isinstance(legacy_model_or_h5, str | Path):
        legacy_model_or_h5 = Path(legacy_model_or_h5)
    source = read_source(legacy_model_or_h5, model)
    checked: list[Assignment] = assignments(source, leaf_layers(model))
    for variable, value in checked:
        variable.assign(value)
