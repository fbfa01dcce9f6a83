"""The values of a model's variables at one moment."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from tfbbb.base.private_apis import version_read


class Snapshot:
    """The values of variables at one moment, which later assignments do not change."""

    def __init__(self, variables: Sequence[keras.Variable]):
        self.values = [_read(variable) for variable in variables]
        self._versions = [version_read(value) for value in self.values]

    def is_same(self, other: "Snapshot") -> bool:
        """Whether no variable changed between two snapshots of the same variables."""
        return self._versions == other._versions


def _read(variable: keras.Variable) -> tf.Tensor:
    resource = variable.value
    if hasattr(resource, "values"):
        # One variable for each device of a strategy.
        return tf.convert_to_tensor(variable)
    # Without the checks of a variable, which take longer than the reading.
    return tf.raw_ops.ReadVariableOp(resource=resource.handle, dtype=resource.dtype)
