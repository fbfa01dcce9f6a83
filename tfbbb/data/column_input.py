"""One named column as an input of a Keras model."""

from typing import Any

import keras


@keras.saving.register_keras_serializable(package="tfbbb")
class ColumnInput(keras.layers.InputLayer):
    """An input `[n]` whose tensor carries the name of a table's column.

    Keras wants the tensors of a dictionary of inputs to be named as its keys, but
    a layer's name must be unique in a model and free of slashes. Columns may be
    called anything (`"dense"`, `"mg/dl"`): here the tensor has the name of the
    column, the layer one that Keras makes up.

    Args:
        column: Name of the column.
        dtype: `"float32"` (NaN is missing) or `"string"` (`""` is missing).
        name: Name of the layer.
    """

    def __init__(self, column: str, dtype: str, name: str | None = None):
        tensor = keras.KerasTensor((None,), dtype=dtype, name=column)
        super().__init__(input_tensor=tensor, name=name)
        self.column = column

    def get_config(self) -> dict[str, Any]:
        return {"column": self.column, "dtype": self.dtype, "name": self.name}
