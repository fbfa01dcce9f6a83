"""The exposure of a row beside the outputs of its network."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from tfbbb.base.private_apis import producer, sources
from tfbbb.base.types import ArrayLike, Config, Shape, Tensor


@keras.saving.register_keras_serializable(package="tfbbb")
class Exposure(keras.layers.Layer):
    """Appends the exposure of a row to the outputs of its network, as they are.

    A count is counted in something: person-days, kilometres, insured years. A
    likelihood with `exposure=True` takes it as its last output, and its mean is exactly
    proportional to it. The exposure is an input of the model, or a part of one.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x, exposure = keras.Input((3,), name="x"), keras.Input((1,), name="exposure")
    >>> log_rate = tfbbb.layers.DenseVariational(1)(x)
    >>> outputs = tfbbb.layers.Exposure()([log_rate, exposure])
    >>> likelihood = tfbbb.likelihoods.Poisson(exposure=True)
    >>> inputs = {"x": x, "exposure": exposure}
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    >>> rows = {"x": np.zeros((2, 3)), "exposure": np.array([[1.0], [2.0]])}
    >>> mean = model.predictive(rows).mean
    >>> float(mean[1, 0] / mean[0, 0])
    2.0

    Args:
        dtype: Data type of the output; half precision ends at 65504.
        name: Name of the layer.
        **kwargs: Options of `keras.layers.Layer`.

    Input shape:
        Outputs [rows, places..., P], and exposures [rows, places..., 1] or
        [rows, places...].

    Output shape:
        [rows, places..., P + 1], in single precision or better.
    """

    def __init__(self, dtype: Any = "float32", name: str | None = None, **kwargs: Any):
        if name is None:
            # An input is often named `exposure`.
            name = f"with_exposure_{keras.backend.get_uid('with_exposure')}"
        super().__init__(dtype=dtype, name=name, **kwargs)

    def call(self, inputs: list[Tensor]) -> Tensor:
        outputs, exposure = inputs
        if len(exposure.shape) < len(outputs.shape):
            exposure = ops.expand_dims(exposure, -1)
        return ops.concatenate([outputs, ops.cast(exposure, outputs.dtype)], axis=-1)

    def compute_output_shape(self, input_shape: list[Shape]) -> Shape:
        *places, width = input_shape[0]
        return (*places, None if width is None else width + 1)

    def get_config(self) -> Config:
        return super().get_config()


def exposure_reader(model: keras.Model) -> Callable[[list[ArrayLike]], np.ndarray]:
    """Returns a function of the flat inputs of a model that returns the exposures."""
    output = model.outputs[0]
    if not isinstance(producer(output), Exposure):
        raise ValueError(
            "A likelihood with `exposure=True` takes outputs of "
            "`tfbbb.layers.Exposure`: end the network with "
            "`Exposure()([outputs, exposure])`. "
            f"Received: outputs of {producer(output).name!r}"
        )
    _, exposure = sources(output)
    for place, tensor in enumerate(model.inputs):
        if tensor is exposure:
            return lambda leaves: np.asarray(leaves[place])
    part = keras.Model(model.inputs, exposure)
    return lambda leaves: ops.convert_to_numpy(part(list(leaves)))
