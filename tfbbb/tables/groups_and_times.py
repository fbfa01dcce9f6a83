"""Columns by which rows are grouped or ordered, and rows that are copies."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import ColumnSource
from tfbbb.tables.notation_choice import Choice, choose_notation
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.words import BooleanNotation
from tfbbb.tables.override import Override
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.table_error import TableError
from tfbbb.tables.values import are_numbers, are_texts, first_row


def read_groups(table: ColumnSource, name: str) -> np.ndarray:
    """Returns the number, from 0, of each row's group: a value of a column, `[n]`."""
    column = Cells.read(table, name).values
    missing = column.is_null(nan_is_null=True).to_numpy()
    if are_texts(column.type):
        missing |= pa.compute.equal(column, "").fill_null(True).to_numpy()
    if missing.any():
        raise TableError(
            f"The group column {name!r} has no value in row {first_row(missing)}; fill "
            "it in, or leave the rows without a group out."
        )
    return np.unique(_places(column), return_inverse=True)[1]


def group_repeated_rows(table: ColumnSource, names: Iterable[str]) -> np.ndarray | None:
    """Groups the rows that have equal values, or miss them, in some columns."""
    groups = np.zeros(table.num_rows, np.int64)
    for name in names:
        places = _places(Cells.read(table, name).values) + 1
        both = pa.array(groups * (places.max() + 1) + places)
        groups = both.dictionary_encode().indices.to_numpy().astype(np.int64)
    return None if groups.max() + 1 == len(groups) else groups


def merge_copies(
    features: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the place of each different row, and the weight of all its copies."""
    rows = np.ascontiguousarray(np.column_stack([features, targets]) + 0.0)
    in_bytes = rows.view(np.dtype((np.void, rows.strides[0]))).ravel()
    _, places, copies = np.unique(in_bytes, return_index=True, return_inverse=True)
    weights = np.ones(len(rows)) if weights is None else weights
    if len(places) < len(rows):
        without_targets = np.ascontiguousarray(rows[:, : features.shape[1]])
        in_bytes = without_targets.view(np.dtype((np.void, without_targets.strides[0])))
        if len(np.unique(in_bytes)) == len(places):
            order = np.argsort(places)
            return places[order], np.bincount(copies, weights)[order]
    return np.arange(len(rows)), weights


def _places(column: pa.ChunkedArray) -> np.ndarray:
    """Returns the place of each value among the distinct ones, `[n]`; -1 for none."""
    if are_numbers(column.type):
        # Adding 0.0 turns -0.0 into 0.0.
        values = column.cast(pa.float64(), safe=False).to_numpy() + 0.0
        column = pa.chunked_array([pa.array(values, mask=np.isnan(values))])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    places = [chunk.indices.cast(pa.int64()).fill_null(-1) for chunk in chunks]
    return pa.chunked_array(places, pa.int64()).to_numpy()


def read_times(
    table: ColumnSource, name: str, override: Override | None = None
) -> np.ndarray:
    """Returns numbers `[n]` in the order of numbers, dates or times in any notation."""
    if override is not None and override.kind == "ignore":
        override = None
    cells = Cells.read(table, name)
    if override is not None:
        cells = cells.as_written
    are_texts = cells.kind == "categorical"
    is_boolean = cells.is_boolean
    if are_texts:
        choice = choose_notation(cells, override)
        is_boolean = isinstance(choice.notation, BooleanNotation)
    if is_boolean:
        raise TableError(
            f"The time column {name!r} holds true and false; name a column of numbers, "
            "dates or times."
        )
    if are_texts:
        values = _times_of_texts(cells, choice)
    elif pa.types.is_temporal(cells.type):
        values = cells.seconds()
    else:
        values = ParsedColumn.parse(cells, "numeric").values
    if (missing := np.isnan(values)).any():
        raise TableError(
            f"The time column {name!r} has no value in row {first_row(missing)}; fill "
            "it in, or leave the rows without a time out."
        )
    return values


def _times_of_texts(cells: Cells, choice: Choice) -> np.ndarray:
    if choice.kind == "categorical" or choice.notation is None:
        row = first_row(cells.texts.parse(DateNotation()).unreadable)
        raise TableError(
            f"The time column {cells.name!r} has the text "
            f"{cells.texts.text(row)!r} in row {row}; it must hold "
            "numbers, or dates and times such as 2024-02-29 or 2024-02-29T18:30:00Z."
        )
    return cells.texts.parse(choice.notation).numbers
