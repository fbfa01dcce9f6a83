"""Conversion of what scikit-learn's users pass as `X` and `y`."""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import validate_data

from tfbbb.base.types import ArrayLike
from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import check_column_names
from tfbbb.tables.given_table import as_source, convert_column, is_missing, is_table
from tfbbb.tables.notations.words import TextNotation
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import are_texts, without_views

if TYPE_CHECKING:
    from tfbbb.tables.column import Column

_DURATIONS = (
    "The targets are durations, so all predictions are in seconds; pass numbers, such "
    "as `y / pd.Timedelta(days=1)`, for another unit."
)


def to_table(
    estimator: BaseEstimator, X: ArrayLike, *, reset: bool, fewest: int
) -> pa.Table:
    """Checks `X` as scikit-learn does, and converts it to a table.

    Columns have the names of a frame's columns, and `x0`, `x1` and so on those of an
    array. Once fitted, they have the names of the fit, by their places.
    """
    if is_frame(X):
        _check_names(getattr(X, "column_names", None) or X.columns)
        validate_data(estimator, X=X, reset=reset, skip_check_array=True)
        table = without_views(as_source(X))
        if table.num_rows < fewest:
            raise TableError(
                f"The table has {table.num_rows} rows, but at least {fewest} are "
                "needed."
            )
        names = [str(name) for name in table.column_names]
    else:
        array = validate_data(
            estimator,
            X=_array(X),
            reset=reset,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=fewest,
        )
        names = [f"x{place}" for place in range(array.shape[1])]
        columns = zip(names, array.T, strict=True)
        table = as_source(
            pa.table({name: _column(name, values) for name, values in columns})
        )
    return table.rename_columns(names if reset else estimator.column_names_)


def is_frame(X: ArrayLike) -> bool:
    """Whether `X` is a frame of pandas, polars, Arrow or a similar library."""
    return is_table(X) and (hasattr(X, "columns") or hasattr(X, "column_names"))


def columns_without_values(table: pa.Table) -> list[str]:
    """Returns the names of columns in which every value is missing."""
    return [name for name in table.column_names if _has_no_value(table, name)]


def _has_no_value(table: pa.Table, name: str) -> bool:
    cells = Cells.read(table, name)
    if cells.values.null_count == table.num_rows:
        return True
    if pa.types.is_floating(cells.type):
        return bool(np.isnan(cells.numbers).all())
    return are_texts(cells.type) and bool(cells.texts.missing(in_text=True).all())


def numbers_as_texts(table: pa.Table, columns: "Iterable[Column]") -> pa.Table:
    """Writes numbers as texts in columns that had numbers beside texts in the fit."""
    for column in columns:
        plain = column.kind == "categorical" and not (
            isinstance(column.notation, TextNotation) and column.notation.numbers
        )
        if plain and column.name in table.column_names:
            cells = Cells.read(table, column.name)
            if cells.kind == "numeric" and not cells.is_duration:
                place = table.column_names.index(column.name)
                digits = cells.digits.values
                table = table.set_column(place, column.name, digits)
    return table


def given_targets(estimator: Any, y: ArrayLike, num_rows: int) -> np.ndarray:
    """Returns `y` as an array [rows], of several targets [rows, k]."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None."
        )
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        if is_classifier(estimator):
            raise ValueError(
                "y should be a 1d array: a classifier has one target. Fit one per "
                "target, for example by `sklearn.multioutput.MultiOutputClassifier`. "
                f"Received: y of shape {values.shape}"
            )
        columns = [given_targets(estimator, column, num_rows) for column in values.T]
        return np.stack(columns, axis=-1)
    values = column_or_1d(values, warn=True)
    if len(values) != num_rows:
        raise ValueError(
            "Every row of X needs one target. "
            f"Received: {num_rows} rows and {len(values)} targets"
        )
    if values.dtype.kind in "OmM":
        missing = np.array([is_missing(value) for value in values], dtype=bool)
        missing |= np.isnat(values) if values.dtype.kind in "mM" else False
        if missing.any():
            row = int(np.argmax(missing))
            raise ValueError(
                "Input y contains NaN or None; drop the rows without a target. "
                f"Received: {values[row]!r} in row {row}"
            )
        return _plain_targets(values)
    assert_all_finite(values, input_name="y")
    return values


def levels_in_order(y: ArrayLike) -> list[object] | None:
    """Returns the categories of an ordered target, in their order; None for others."""
    if getattr(y, "ndim", 1) == 2 and hasattr(y, "iloc"):
        y = y.iloc[:, 0]
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
        return list(dtype.categories)
    return None


def _plain_targets(values: np.ndarray) -> np.ndarray:
    """Returns targets that are objects, durations or dates as numbers, or texts."""
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    types = pa.types
    if column is None:
        kinds = sorted({type(value).__name__ for value in values})
        if set(kinds) <= {"str", "bool", "int", "float"}:
            # scikit-learn has its own sentence on texts beside numbers.
            return values
        raise ValueError(
            "y must hold numbers, texts or booleans, one type of them. "
            f"Received: values of type {' and '.join(kinds)}"
        )
    if types.is_date(column.type) or types.is_timestamp(column.type):
        raise ValueError(
            "The targets are dates, which no model predicts; turn them into numbers, "
            "such as days since a date: `(y - y.min()) / pd.Timedelta(days=1)`. "
            f"Received: {values[0]!s} in row 0"
        )
    cells = Cells("y", pa.chunked_array([column]))
    if cells.is_duration:
        warnings.warn(_DURATIONS, stacklevel=4)
        return cells.seconds()
    if cells.is_boolean:
        return np.array(values, dtype=bool)
    if types.is_integer(column.type):
        return np.array(values, dtype=np.int64)
    if cells.may_have_fractions:
        return np.array(values, dtype=np.float64)
    if types.is_string(column.type):
        return values
    raise ValueError(
        "y must hold numbers, texts or booleans. "
        f"Received: values of type {type(values[0]).__name__}"
    )


def _array(X: ArrayLike) -> ArrayLike:
    """Returns lists of mixed values as objects, which NumPy would turn into texts."""
    if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "SU":
        return np.asarray(X, dtype=object)
    return X


def _column(name: str, values: np.ndarray) -> pa.Array:
    if values.dtype.kind in "fiu":
        values = values.astype(np.float64)
    elif values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    try:
        return convert_column(name, np.ascontiguousarray(values))
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"Column {name!r} must hold numbers, or texts: {error}"
        ) from None


def _check_names(names: Sequence[object]) -> None:
    """Checks the names of a frame, which may be numbers or tuples."""
    are_texts = {isinstance(name, str) for name in names}
    if len(are_texts) > 1:
        other = next(name for name in names if not isinstance(name, str))
        raise TableError(
            "The names of columns must be all texts, or none: convert them by "
            "`X.columns = X.columns.astype(str)`. "
            f"Received: a name of type {type(other).__name__}, {other!r}"
        )
    texts = [str(name) for name in names]
    check_column_names(texts, where="X cannot be read: ")
