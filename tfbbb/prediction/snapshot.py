"""The values of a model's variables at one moment."""

from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from tfbbb.base.private_apis import version_read
from tfbbb.base.types import Structure
from tfbbb.prediction.compiled import fast_call, traced


class Snapshot:
    """The values of variables at one moment, which later assignments do not change.

    Args:
        values: The values, as they were read eagerly.
    """

    def __init__(self, values: Structure):
        self.values = values
        self._versions = [version_read(value) for value in tf.nest.flatten(values)]

    def is_same(self, other: "Snapshot") -> bool:
        """Whether no variable changed between two snapshots of the same variables."""
        return self._versions == other._versions


def reader(variables: Sequence[Sequence[keras.Variable]]) -> Callable[[], Snapshot]:
    """Returns a function that takes a snapshot of lists of variables.

    One call of TensorFlow reads them all: a call for each takes several times as long.
    """

    def read() -> list[list[tf.Tensor]]:
        return [[_read(variable) for variable in part] for part in variables]

    if any(_is_distributed(variable) for part in variables for variable in part):
        return lambda: Snapshot(read())
    call = fast_call(traced(read))
    return lambda: Snapshot(call())


def _read(variable: keras.Variable) -> tf.Tensor:
    if _is_distributed(variable):
        return tf.convert_to_tensor(variable)
    # Without the checks of a variable, which take longer than the reading.
    resource = variable.value
    return tf.raw_ops.ReadVariableOp(resource=resource.handle, dtype=resource.dtype)


def _is_distributed(variable: keras.Variable) -> bool:
    """Whether there is one variable for each device of a strategy."""
    return hasattr(variable.value, "values")
