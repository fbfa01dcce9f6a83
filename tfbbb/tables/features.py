"""The preprocessing part of a model: from raw columns to features."""

import keras

from tfbbb.base.types import Config
from tfbbb.tables.calendar_features import CalendarFeatures
from tfbbb.tables.column import Column
from tfbbb.tables.number_features import PiecewiseLinearEncoding, Standardize
from tfbbb.tables.schema import Schema
from tfbbb.tables.text_features import HashedText, OneHot

# Of all columns together: more would make the first layer the slowest part.
_MOST_INTERVALS = 1000


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


def preprocessing(
    schema: Schema, *, piecewise_linear: bool = False
) -> tuple[keras.KerasTensor | dict[str, keras.KerasTensor], keras.KerasTensor]:
    """Builds the symbolic inputs and the features of a model from a schema.

    Numbers become `(x - mean) / scale`. A missing number becomes 0, and a column that
    may have missing values gets an indicator feature. A text column becomes one
    indicator per category and one for all texts that training did not see. Missing
    text is a category of its own if training saw it. Constant columns become 0.

    Dates become days, years and cycles: see
    `tfbbb.tables.calendar_features.CalendarFeatures`. A text column of too many
    categories becomes indicators of buckets, and the mean target of each text if the
    schema has it: see `tfbbb.tables.text_features.HashedText`.
    A missing value in a column that was complete in training becomes 0 too, like the
    mean; missing text counts as text that training did not see.

    The order of the features is: standardised numeric columns in their order,
    indicators of missing numbers, piecewise linear codes, dates, indicators of
    categories, indicators of buckets.

    Args:
        schema: Schema of the training table.
        piecewise_linear: Whether numbers also have a
            `tfbbb.tables.number_features.PiecewiseLinearEncoding`.

    Returns:
        The inputs and one feature tensor `[n, p]`. The inputs are a tensor `[n, d]`
        named `inputs` if `schema.input_format` is `"matrix"`, else a dictionary of
        tensors `[n]` by column name, of the types of the columns. Both take what
        `schema.inputs(table)` returns. A column with a role is an input and gives no
        feature.

    Example:
    >>> from tfbbb.tables import Schema, samples
    >>> schema = Schema.infer(samples.diabetes(), "progression")
    >>> inputs, features = preprocessing(schema)
    >>> inputs.shape, features.shape
    ((None, 10), (None, 10))
    """
    predictors = schema.predictors
    numeric = [column for column in predictors if column.kind == "numeric"]
    if schema.input_format == "matrix":
        inputs = keras.Input((len(numeric),), dtype=_dtype(numeric), name="inputs")
        return inputs, _encode(numeric, inputs, piecewise_linear)
    dates = [column for column in predictors if column.kind == "date"]
    texts = [column for column in predictors if column.kind == "categorical"]
    listed = [column for column in texts if not column.buckets]
    hashed = [column for column in texts if column.buckets]
    inputs = {
        column.name: ColumnInput(column.name, column.dtype).output
        for column in schema.features
    }
    parts = []
    if numeric:
        dtype = _dtype(numeric)
        numbers = [keras.ops.cast(inputs[c.name], dtype) for c in numeric]
        stacked = keras.ops.stack(numbers, axis=-1)
        parts.append(_encode(numeric, stacked, piecewise_linear))
    if dates:
        stacked = keras.ops.stack([inputs[c.name] for c in dates], axis=-1)
        names = ("low", "high", "mean", "scale", "missing", "constant", "cycles")
        parts.append(CalendarFeatures(_records(dates, *names))(stacked))
    if listed:
        one_hot = OneHot([column.categories for column in listed])
        parts.append(one_hot([inputs[column.name] for column in listed]))
    if hashed:
        in_buckets = HashedText(
            [column.buckets for column in hashed],
            [column.codes for column in hashed],
            [column.means for column in hashed],
        )
        parts.append(in_buckets([inputs[column.name] for column in hashed]))
    features = keras.layers.Concatenate()(parts) if len(parts) > 1 else parts[0]
    return inputs, features


def _dtype(columns: list[Column]) -> str:
    """Returns the type of the numbers of columns together."""
    return "float64" if any(column.precise for column in columns) else "float32"


def _encode(
    columns: list[Column], numbers: keras.KerasTensor, piecewise_linear: bool
) -> keras.KerasTensor:
    records = _records(columns, "mean", "scale", "missing", "constant")
    standardized = Standardize(records)(numbers)
    edges = [column.edges for column in columns]
    if not piecewise_linear or not any(edges):
        return standardized
    encoded = PiecewiseLinearEncoding(_fewer(edges))(numbers)
    return keras.layers.Concatenate()([standardized, encoded])


def _fewer(edges: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Returns every second edge, or third and so on, where columns are many."""
    intervals = sum(max(len(column) - 1, 0) for column in edges)
    step = -(-intervals // _MOST_INTERVALS)
    return [(*column[:-1:step], *column[-1:]) for column in edges]


def _records(columns: list[Column], *names: str) -> list[Config]:
    return [{name: getattr(column, name) for name in names} for column in columns]
