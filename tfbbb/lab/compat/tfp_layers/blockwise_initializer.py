"""Initial values in blocks along the last axis."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from tfbbb.base.types import Config, DType, Initializer, Tensor
from tfbbb.lab.compat.tfp_layers.function_config import read_values, to_config


@keras.saving.register_keras_serializable(package="tfbbb.compat.tfp_layers")
class BlockwiseInitializer(keras.initializers.Initializer):
    """Initialises each block of the last axis by its own initializer.

    Example:

    >>> init = BlockwiseInitializer(["zeros", "ones"], sizes=[1, 2])
    >>> init((2, 3)).numpy()
    array([[0., 1., 1.],
           [0., 1., 1.]], dtype=float32)

    Args:
        initializers: Keras initializers, by name or as objects, one per block.
        sizes: Lengths of the blocks.
        validate_args: Unused, as shapes are always checked.

    Raises:
        ValueError: When called for a shape whose last axis is not `sum(sizes)`.
    """

    def __init__(
        self,
        initializers: Sequence[Initializer],
        sizes: Sequence[int],
        validate_args: bool = False,
    ):
        self._initializers = initializers
        self._sizes = sizes
        self._validate_args = validate_args

    @property
    def initializers(self) -> Sequence[Initializer]:
        return self._initializers

    @property
    def sizes(self) -> Sequence[int]:
        return self._sizes

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    def __call__(self, shape: tuple[int, ...], dtype: DType = None) -> Tensor:
        shape = tuple(int(n) for n in shape)
        sizes = [int(n) for n in np.asarray(self.sizes)]
        if not shape or shape[-1] != sum(sizes):
            raise ValueError(
                "The last axis of the shape must have the length `sum(sizes)`. "
                f"Received: shape={shape}, sizes={sizes}"
            )
        return ops.concatenate(
            [
                keras.initializers.get(init)((*shape[:-1], size), dtype=dtype)
                for init, size in zip(self.initializers, sizes, strict=True)
            ],
            axis=-1,
        )

    def get_config(self) -> Config:
        return {
            "initializers": [
                to_config(keras.initializers.get(init)) for init in self.initializers
            ],
            "sizes": [int(n) for n in np.asarray(self.sizes)],
            "validate_args": self.validate_args,
        }

    @classmethod
    def from_config(cls, config: Config) -> "BlockwiseInitializer":
        given = dict(enumerate(config["initializers"]))
        initializers = [
            keras.initializers.get(init) for init in read_values(given).values()
        ]
        return cls(**{**config, "initializers": initializers})
