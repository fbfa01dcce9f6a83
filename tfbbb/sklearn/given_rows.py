"""Conversion of what scikit-learn's users pass as `X`, `y` and `sample_weight`."""

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import validate_data

from tfbbb.base.types import ArrayLike
from tfbbb.tables.given_table import as_source, is_table
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import without_views


def to_table(
    estimator: BaseEstimator, X: ArrayLike, *, reset: bool, fewest: int
) -> pa.Table:
    """Checks `X` as scikit-learn does, and converts it to a table.

    Columns have the names of a frame's columns, and `x0`, `x1` and so on those of an
    array. Once fitted, they have the names of the fit, by their places.

    Args:
        estimator: The estimator; gets `n_features_in_` and `feature_names_in_`, or is
            compared with them.
        X: A frame of pandas, polars or Arrow, or an array [rows, features].
        reset: Whether this is a fit.
        fewest: Least number of rows.

    Raises:
        ValueError: `X` is not a table of numbers and texts, is sparse or complex, has
            too few rows, or has other features than in the fit.
    """
    if is_frame(X):
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
        table = pa.table({name: _column(name, values) for name, values in columns})
    return table.rename_columns(names if reset else estimator.column_names_)


def is_frame(X: ArrayLike) -> bool:
    """Whether `X` is a frame of pandas, polars, Arrow or a similar library."""
    return is_table(X) and (hasattr(X, "columns") or hasattr(X, "column_names"))


def one_target(estimator: BaseEstimator, y: ArrayLike, num_rows: int) -> np.ndarray:
    """Returns `y` as an array [rows].

    Raises:
        ValueError: There is no `y`, several targets per row, or another number of rows.
    """
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None."
        )
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] > 1:
        raise ValueError(
            "y should be a 1d array: a model has one target. Fit one estimator per "
            "target, for example by `sklearn.multioutput.MultiOutputRegressor`. "
            f"Received: y of shape {values.shape}"
        )
    values = column_or_1d(values, warn=True)
    if len(values) != num_rows:
        raise ValueError(
            "Every row of X needs one target. "
            f"Received: {num_rows} rows and {len(values)} targets"
        )
    if values.dtype.kind == "O":
        missing = [value is None or value != value for value in values]
        if any(missing):
            raise ValueError(
                "Input y contains NaN or None; drop the rows without a target. "
                f"Received: {values[np.argmax(missing)]!r} in row {np.argmax(missing)}"
            )
    else:
        assert_all_finite(values, input_name="y")
    return values


def one_weight(sample_weight: ArrayLike, num_rows: int) -> np.ndarray | None:
    """Returns one weight per row, float64 [rows], or None.

    Raises:
        ValueError: A weight is negative or not finite, all are zero, or there is
            another number of them.
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(num_rows, float(weights))
    if weights.shape != (num_rows,):
        raise ValueError(
            "`sample_weight` must hold one number per row. "
            f"Received: sample_weight of shape {weights.shape} for {num_rows} rows"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            "Every sample weight must be a finite number of at least 0. "
            f"Received: {weights[row]} in row {row}"
        )
    if not weights.any():
        raise ValueError(
            "The weights of all rows are zero, so there is nothing to learn; "
            "`sample_weight` must contain at least one non-zero number."
        )
    return weights


def _array(X: ArrayLike) -> ArrayLike:
    """Returns lists of mixed values as an array of objects, anything else as it is.

    NumPy would turn the numbers beside texts into texts.
    """
    if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "SU":
        return np.asarray(X, dtype=object)
    return X


def _column(name: str, values: np.ndarray) -> pa.Array:
    if values.dtype.kind in "fiu":
        values = values.astype(np.float64)
    elif values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    try:
        return pa.array(np.ascontiguousarray(values), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(
            f"Column {name!r} must hold numbers, or texts: {error}"
        ) from None
