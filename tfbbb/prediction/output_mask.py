"""The places of a row that count, by the mask that Keras keeps with the outputs."""

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.private_apis import mask_of, sublayers
from tfbbb.base.types import Structure
from tfbbb.prediction.inputs import flat_inputs


class OutputMask:
    """Computes Keras' mask of the outputs of a functional model.

    `Embedding(mask_zero=True)`, `Masking` and layers that are called with a `mask` mark
    the steps of a sequence that count, and Keras hands the mask on to the outputs. Only
    the operations that the mask depends on run.
    """

    def __init__(self, model: keras.Model):
        self._model = model
        self._may_exist = mask_of(model.outputs[0]) is not None
        # Keras computes the mask of a model within a model only when that model runs.
        layers = sublayers(model)[1:]
        if any(isinstance(layer, keras.Model) for layer in layers):
            self._may_exist |= any(map(_makes_mask, layers))
        self._function = tf.function(self._mask, reduce_retracing=True)

    def __call__(self, x: Structure) -> tf.Tensor | None:
        """Returns the mask of the outputs, [rows, places...], or None without one."""
        if not self._may_exist:
            return None
        leaves = [
            tf.cast(leaf, reference.dtype)
            for leaf, reference in zip(
                flat_inputs(self._model, x), self._model.inputs, strict=True
            )
        ]
        mask = self._function(leaves)
        if mask is None:
            self._may_exist = False
            return None
        # With members, the model repeats the rows.
        return mask[: tf.shape(leaves[0])[0]]

    def of_arrays(self, x: Structure) -> np.ndarray | None:
        """Returns the mask as an array; None also if Keras will refuse the inputs."""
        try:
            mask = self(x)
        except (TypeError, ValueError):
            return None
        return None if mask is None else mask.numpy()

    def _mask(self, leaves: list[tf.Tensor]) -> tf.Tensor | None:
        inputs = tree.pack_sequence_as(self._model.input, leaves)
        # The seeds of the layers stay as they are.
        with keras.StatelessScope():
            return mask_of(self._model(inputs, training=False))


def _makes_mask(layer: keras.Layer) -> bool:
    """Whether a layer makes a mask, or is one of another library that may."""
    if isinstance(layer, keras.layers.Masking) or getattr(layer, "mask_zero", False):
        return True
    owner = next(c for c in type(layer).__mro__ if "compute_mask" in vars(c))
    return not owner.__module__.startswith(("keras.", "tfbbb."))
