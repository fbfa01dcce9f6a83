"""Converts tables, as codecs read them, to the inputs of an exported model."""

import struct
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from tfbbb.base.texts import abbreviate
from tfbbb.base.types import JsonList, JsonObject
from tfbbb.export.inputs import Inputs, Tensors, check_names, listed, number
from tfbbb.export.manifest import Feature, InputError, Manifest
from tfbbb.tables.row_warnings import ReadColumns
from tfbbb.tables.table_error import TableError


def from_rows(rows: object, manifest: Manifest, key: str) -> Inputs:
    """Reads rows that are lists of values, or objects by feature name."""
    if not isinstance(rows, list) or not rows:
        raise InputError(
            f"`{key}` must be a list of at least one row. Received: {abbreviate(rows)}"
        )
    if isinstance(rows[0], dict):
        rows = _rows_as_lists(rows, manifest)
    elif len(manifest.features) == 1:
        # TensorFlow Serving takes the values of a single input as they are.
        rows = [row if isinstance(row, list) else [row] for row in rows]
    if manifest.row_shape is not None:
        rows = [flattened(row, manifest.row_shape) or row for row in rows]
    written = any(feature.notation is not None for feature in manifest.features)
    # Of one data type, as the tensor is.
    is_single = (first := manifest.features[0]).kind == "numeric" and not first.dtype
    is_matrix = manifest.inputs == "matrix" and is_single
    if is_matrix and not (written and _hold_texts(rows)):
        return _matrix(rows, manifest.features)
    _check_lists(rows, manifest.features)
    names = [feature.name for feature in manifest.features]
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def from_columns(columns: object, manifest: Manifest) -> Inputs:
    """Reads columns by feature name, or by tensor name as TensorFlow Serving does."""
    if isinstance(columns, pa.Table):
        return _from_arrow(columns, manifest)
    if isinstance(columns, list):
        return from_rows(columns, manifest, "inputs")
    if not isinstance(columns, dict):
        raise InputError(
            "`inputs` must be an object of columns, or a matrix. "
            f"Received: {abbreviate(columns)}"
        )
    if _holds_the_matrix(columns, manifest):
        matrix = columns["inputs"]
        if isinstance(matrix, np.ndarray):
            return matrix
        return from_rows(matrix, manifest, "inputs.inputs")
    named: JsonObject = columns
    names = _names_by_key(named, manifest)
    return {name: named[key] for key, name in names.items()}


def flattened(nested: object, shape: Sequence[int]) -> JsonList | None:
    """Returns the values of lists in lists of a shape; None if they have another."""
    values: JsonList = [nested]
    for size in shape:
        if not all(isinstance(part, list) and len(part) == size for part in values):
            return None
        values = list(chain.from_iterable(values))
    return values


def _from_arrow(table: pa.Table, manifest: Manifest) -> Inputs:
    """Reads the columns of an Arrow table as those of a file are read."""
    check_names(table.column_names, manifest.features)
    try:
        return ReadColumns.read([f.column for f in manifest.features], table)
    except TableError as error:
        raise InputError(str(error)) from None


def _rows_as_lists(rows: JsonList, manifest: Manifest) -> JsonList:
    """Converts rows that are objects to lists in the order of the features."""
    if _holds_the_matrix(rows[0], manifest):
        return [x["inputs"] if _holds_the_matrix(x, manifest) else x for x in rows]
    keys: Sequence[str] = ()
    columns = None
    lists = []
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(
                f"Row {place} must be an object of columns, as row 1 is. "
                f"Received: {abbreviate(row)}"
            )
        if row.keys() != columns:
            columns = row.keys()
            try:
                keys = list(_names_by_key(row, manifest))
            except InputError as error:
                raise InputError(f"Row {place}: {error}", error.column) from None
        lists.append([row[key] for key in keys])
    return lists


def _holds_the_matrix(named: object, manifest: Manifest) -> bool:
    """Returns whether the only key is the name of the tensor of all features."""
    return (
        manifest.inputs == "matrix"
        and isinstance(named, dict)
        and named.keys() == {"inputs"}
        and manifest.features[0].name != "inputs"
    )


def _names_by_key(named: JsonObject, manifest: Manifest) -> dict[str, str]:
    """Maps the key of each feature in `named` to the name of the feature."""
    by_name = manifest.inputs == "matrix"
    names = {
        feature.name if by_name or feature.name in named else feature.tensor: (
            feature.name
        )
        for feature in manifest.features
    }
    check_names([names.get(key, key) for key in named], manifest.features)
    return names


def _hold_texts(rows: Sequence[object]) -> bool:
    return any(str in map(type, row) for row in rows if isinstance(row, list))


def _matrix(rows: Sequence[JsonList], features: Sequence[Feature]) -> Inputs:
    # `struct` refuses values that are not numbers, at half the cost of NumPy's
    # conversion, which would also accept text.
    single_precision = struct.Struct(f"{len(features)}f")
    matrix = np.empty((len(rows), len(features)), dtype=np.float32)
    buffer = matrix.data.cast("B")
    try:
        for place, row in enumerate(rows):
            single_precision.pack_into(buffer, place * single_precision.size, *row)
    except (struct.error, TypeError, OverflowError):
        return _matrix_by_value(rows, features)
    # Numbers beyond single precision became infinite; the error must quote them.
    if np.isfinite(matrix).all():
        return Tensors(inputs=matrix)
    return _matrix_by_value(rows, features)


def _matrix_by_value(
    rows: Sequence[JsonList], features: Sequence[Feature]
) -> np.ndarray:
    """Reads value by value, to report the first value that is not a number."""
    _check_lists(rows, features)
    return np.array(
        [
            [number(value, place, f) for value, f in zip(row, features, strict=True)]
            for place, row in enumerate(rows, start=1)
        ]
    )


def _check_lists(rows: Sequence[object], features: Sequence[Feature]) -> None:
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, list):
            raise InputError(
                f"Row {place} must be a list of values. Received: {abbreviate(row)}"
            )
        if len(row) != len(features):
            raise InputError(
                f"Row {place} has {len(row)} values, but the model reads "
                f"{len(features)}: {listed(features)}."
            )
