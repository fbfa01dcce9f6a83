"""One named column as an input of a Keras model."""

import keras

from tfbbb.base.types import Config


@keras.saving.register_keras_serializable(package="tfbbb")
class ColumnInput(keras.layers.InputLayer):
    """An input `[n]` whose tensor carries the name of a table's column.

    Keras requires each tensor of a dictionary of inputs to have the name of its key.
    The name of an input layer, however, must be unique in the model and free of
    slashes, and a column can have any name (`"dense"`, `"mg/dl"`). Here the tensor has
    the name of the column, and Keras generates the name of the layer.
    """

    def __init__(self, column: str, dtype: str, name: str | None = None):
        tensor = keras.KerasTensor((None,), dtype=dtype, name=column)
        super().__init__(input_tensor=tensor, name=name)
        self.column = column

    def get_config(self) -> Config:
        return {"column": self.column, "dtype": self.dtype, "name": self.name}
