"""Initial values for every member of an ensemble."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfbbb.base.types import Config, DType, Initializer, Shape


class MemberInitializer(keras.initializers.Initializer):
    """Gives each of `members` posteriors its own initial values.

    A random initializer with a seed gets another seed for each member but the first,
    which starts as a single posterior would.
    """

    def __init__(self, initializer: Initializer, members: int):
        self.initializer = keras.initializers.get(initializer)
        self.members = members

    def __call__(self, shape: Shape, dtype: DType = None, **kwargs: Any) -> Any:
        own = tuple(shape[1:])
        return tf.stack(
            [
                self._member_initializer(index)(own, dtype=dtype, **kwargs)
                for index in range(self.members)
            ]
        )

    def _member_initializer(self, index: int) -> Any:
        initializer = self.initializer
        seed = getattr(initializer, "seed", None)
        if index == 0 or not isinstance(seed, int):
            return initializer
        return type(initializer)(**{**initializer.get_config(), "seed": seed + index})

    def get_config(self) -> Config:
        return {
            "initializer": keras.initializers.serialize(self.initializer),
            "members": self.members,
        }
