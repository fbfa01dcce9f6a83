"""The description of one column of a table, with which a model reads the column."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.data.column_names import check_column_exists
from tfbbb.data.column_source import ColumnSource
from tfbbb.data.table_error import ColumnError, TableError
from tfbbb.data.task import MAX_CATEGORIES
from tfbbb.data.values import (
    Kind,
    column_kind,
    first_row,
    number_texts,
    read_numbers,
    read_texts,
)

# A text column is mostly numbers if this fraction of its known values are numbers, and
# it has more distinct texts than a category usually has.
_MOSTLY = 0.9
_MAX_USUAL_CATEGORIES = 20
# Between the edges of a column: by rows, from the least to the most.
_FEWEST_INTERVALS, _MOST_INTERVALS = 12, 48
_ROWS_PER_INTERVAL = 200
_MIN_SCALE = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Column:
    """The description of one column: its kind, statistics and categories.

    Attributes:
        name: Name of the column.
        kind: `"numeric"` (numbers; `true` and `false` count as 1 and 0) or
            `"categorical"` (text).
        missing: Whether a value may be missing: null, NaN or the empty text.
        mean: Mean of the values; 0.0 for a categorical column.
        scale: Standard deviation of the values; 1.0 for a constant or
            categorical column.
        categories: The distinct texts in order; the empty text stands for a missing
            value. Empty for a numeric column.
        constant: Whether a numeric column holds only one value, so that a model cannot
            learn from the column.
        edges: Quantiles of the values of a numeric column at equal steps from the least
            to the greatest, without repetitions; of at least three numbers, else empty.
    """

    name: str
    kind: Kind
    missing: bool = False
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    constant: bool = False
    edges: tuple[float, ...] = ()

    @classmethod
    def infer(
        cls,
        table: ColumnSource,
        name: str,
        rows: np.ndarray | None,
        *,
        as_text: bool = False,
    ) -> "Column":
        """Infers a column from a table; kind and `missing` come from all rows.

        Args:
            table: Table with a column of this name.
            name: Name of the column.
            rows: Indices of the rows that give statistics and categories, or None
                for all.
            as_text: Whether to accept text that is mostly numbers.

        Raises:
            TableError: The column holds neither numbers nor text, an infinite value,
                more than 1000 distinct texts, no value at all, or text that is mostly
                numbers.
        """
        if column_kind(table, name) == "numeric":
            return cls.from_numbers(name, read_numbers(table, name), rows)
        if not as_text:
            _check_not_mostly_numbers(table, name)
        return cls.from_texts(name, read_texts(table, name), rows)

    @classmethod
    def from_numbers(
        cls, name: str, values: np.ndarray, rows: np.ndarray | None = None
    ) -> "Column":
        """Describes a column of numbers `[n]`, NaN for missing; see `infer`."""
        missing = np.isnan(values)
        known = values if rows is None else values[rows]
        known = known[~np.isnan(known)]
        if not known.size:
            where = "" if missing.all() else " in the training rows"
            raise ColumnError(
                f"Column {name!r} has no values{where}; leave it out.", name
            )
        # Models compute in single precision: values equal in it are constant.
        single = known.astype(np.float32)
        scale = float(known.std())
        constant = bool(single.min() == single.max()) or scale < _MIN_SCALE
        return cls(
            name=name,
            kind="numeric",
            missing=bool(missing.any()),
            mean=float(known.mean()),
            scale=1.0 if constant else scale,
            constant=constant,
            edges=_quantile_edges(single),
        )

    @classmethod
    def from_texts(
        cls, name: str, values: pa.ChunkedArray, rows: np.ndarray | None = None
    ) -> "Column":
        """Describes a column of texts, `""` for missing; see `infer`."""
        distinct = pa.compute.unique(values)
        texts = distinct.to_pylist() if len(distinct) <= MAX_CATEGORIES else None
        if texts == [""]:
            raise ColumnError(f"Column {name!r} has no values; leave it out.", name)
        if texts is None:
            raise ColumnError(
                f"Column {name!r} has {len(distinct)} distinct texts, more than the "
                f"{MAX_CATEGORIES} that can be categories; group its values or leave "
                "the column out.",
                name,
            )
        places = pa.compute.index_in(values, value_set=distinct).to_numpy()
        trained = np.unique(places if rows is None else places[rows])
        return cls(
            name=name,
            kind="categorical",
            missing="" in texts,
            categories=tuple(sorted(texts[place] for place in trained)),
        )

    def values(self, table: ColumnSource) -> np.ndarray:
        """Reads this column of a table.

        Args:
            table: Any table with a column of this name.

        Returns:
            Array `[n]`: float32 with NaN for missing, or text (object) with `""`
            for missing.

        Raises:
            TableError: The table lacks the column, or a value is of the wrong kind,
                infinite, or missing although training had no missing value.
        """
        check_column_exists(table, self.name, role="feature")
        if self.kind == "numeric":
            values = read_numbers(table, self.name).astype(np.float32)
            missing = np.isnan(values)
        else:
            values = read_texts(table, self.name).to_numpy()
            missing = values == ""
        if missing.any() and not self.missing:
            raise TableError(
                f"Column {self.name!r} has no value in row {first_row(missing)}, but "
                "the model was trained without missing values in it."
            )
        return values

    # Programs may still use these names.
    of_numbers, of_texts, values_of = from_numbers, from_texts, values

    def to_dict(self) -> dict[str, Any]:
        """Returns the column as plain JSON values."""
        lists = {"categories": list(self.categories), "edges": list(self.edges)}
        return {**asdict(self), **lists}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Column":
        """Creates a column from the result of `to_dict`."""
        tuples = {name: tuple(values.get(name, ())) for name in ("categories", "edges")}
        return cls(**{**values, **tuples})


def _quantile_edges(values: np.ndarray) -> tuple[float, ...]:
    """Returns distinct quantiles of float32 values; two values need no curve."""
    by_rows = len(values) // _ROWS_PER_INTERVAL
    number = min(max(by_rows, _FEWEST_INTERVALS), _MOST_INTERVALS)
    quantiles = np.quantile(values, np.linspace(0, 1, number + 1))
    edges = np.unique(quantiles.astype(np.float32))
    return tuple(edges.tolist()) if len(edges) > 2 else ()


def _check_not_mostly_numbers(table: ColumnSource, name: str) -> None:
    """Raises if a few wrong cells may have turned a column of numbers into text."""
    texts = read_texts(table, name)
    known = pa.compute.not_equal(texts, "").to_numpy()
    others = np.flatnonzero(~number_texts(table, name) & known)
    mostly = known.sum() - len(others) >= _MOSTLY * known.sum()
    if len(others) and mostly and _count_distinct(texts) > _MAX_USUAL_CATEGORIES:
        text = texts[int(others[0])].as_py()
        raise ColumnError(
            f"Column {name!r} is mostly numbers, but has the text {text!r} "
            f"in row {others[0] + 1}; correct the cell, empty it if the number is "
            "missing, or name the column in text_columns.",
            name,
            may_be_text=True,
        )


def _count_distinct(texts: pa.ChunkedArray) -> int:
    """Returns the number of distinct texts, without the empty text."""
    distinct = pa.compute.unique(texts)
    return len(distinct) - pa.compute.sum(pa.compute.equal(distinct, "")).as_py()
