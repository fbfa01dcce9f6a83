"""The description of one column of a table, with which a model reads the column."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from tfbbb.base.task import MAX_CATEGORIES
from tfbbb.base.types import Config
from tfbbb.tables.cells import Cells, Kind
from tfbbb.tables.column_names import ColumnSource, check_columns_exist
from tfbbb.tables.complaints import (
    check_all_readable,
    check_texts,
    count_unreadable,
    remark_on_codes,
    without_values,
)
from tfbbb.tables.notation_choice import choose_notation
from tfbbb.tables.notations import Notation, notation_from_dict
from tfbbb.tables.notations.words import TextNotation
from tfbbb.tables.override import Override
from tfbbb.tables.parsed_column import ParsedColumn, parse_column
from tfbbb.tables.values import drop_missing

_BUCKETS = 256
# Between the edges of a column: by rows, from the least to the most.
_FEWEST_INTERVALS, _MOST_INTERVALS = 12, 48
_ROWS_PER_INTERVAL = 200
_MIN_SCALE = float(np.finfo(np.float32).tiny)
# Of the standard deviation: what rounding to single precision may change of a value.
# Of the size of the values: a standard deviation that is lost beside their mean.
_LARGEST_ROUNDING, _SMALLEST_SPREAD = 1e-4, 1e-6
# Of the size of the values: what rounding in double precision leaves of a constant.
_SMALLEST_RANGE = 1e-14
_DAY = 86400
_NUMBERED = re.compile(r"([^0-9]*)([0-9]{1,15})(?![0-9])")
# What a likelihood reads beside the target.
Role = Literal["exposure", "event"]
_LISTS = ("categories", "edges", "cycles", "remarks", "warnings", "codes", "means")


@dataclass(frozen=True)
class Column:
    """The description of one column: its kind, statistics and categories.

    Attributes:
        name: Name of the column.
        kind: `"numeric"` (numbers; `true` and `false` count as 1 and 0, durations in
            seconds), `"categorical"` (text) or `"date"` (dates and times).
        missing: Whether a value was missing in the table.
        mean: Mean of the values; of dates in days since `low`; 0.0 for a categorical
            column.
        scale: Standard deviation of the values, of dates in days; 1.0 for a constant or
            categorical column.
        categories: The distinct texts in order; the empty text stands for a missing
            value. Empty for a numeric column, and for one with `buckets`.
        constant: Whether a column of numbers or dates holds only one value, so that a
            model cannot learn from the column.
        edges: Quantiles of the values of a numeric column at equal steps from the least
            to the greatest, without repetitions; of at least three numbers, else empty.
        notation: How the cells are written; None for plain numbers or texts.
        low: The least value of the training rows; of dates in seconds since 1970.
            None for a categorical column, and if unknown.
        high: The greatest value of the training rows.
        buckets: Number of buckets for the texts of a column with more categories than
            can be listed; 0 for none.
        cycles: Of a date, the parts of the calendar that differ between its values:
            `"month"`, `"weekday"` and `"hour"`.
        remarks: Sentences on how the column was understood, and the warnings.
        warnings: The remarks on why the figures of a model that reads the column may
            be too good: it may give the target away, or tell of an order or of groups
            of the rows.
        num_missing: Number of missing values in the table.
        precise: Whether single precision loses what differs between numbers, such as
            1e9 and 1e9 + 1, so that a model takes them in double precision.
        codes: Of a column with buckets, the `text_features.text_code` of each text
            whose mean target a model takes; empty for none.
        means: The smoothed mean target of each of them, as a standardised number.
        role: What the likelihood reads the column as, in place of the network:
            `"exposure"` of a count, or whether the `"event"` of a time happened; None
            for a column to predict from.
    """

    name: str
    kind: Kind
    missing: bool = False
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    constant: bool = False
    edges: tuple[float, ...] = ()
    notation: Notation | None = None
    low: float | None = None
    high: float | None = None
    buckets: int = 0
    cycles: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    num_missing: int = 0
    warnings: tuple[str, ...] = ()
    precise: bool = False
    codes: tuple[int, ...] = ()
    means: tuple[float, ...] = ()
    role: Role | None = None

    @classmethod
    def describe(
        cls,
        parsed: ParsedColumn,
        rows: np.ndarray | None = None,
        *,
        buckets: int = 0,
        remarks: tuple[str, ...] = (),
    ) -> "Column":
        """Describes a parsed column by the values of some rows, or of all."""
        if parsed.kind == "categorical":
            statistics = _describe_texts(parsed, rows, buckets)
        elif parsed.kind == "date":
            statistics = _describe_dates(parsed, rows)
        else:
            statistics = _describe_numbers(parsed, rows)
        return cls(
            parsed.name,
            parsed.kind,
            missing=bool(parsed.missing.any()),
            num_missing=int(parsed.missing.sum()),
            notation=parsed.notation,
            remarks=remarks,
            **statistics,
        )

    def refitted(self, table: ColumnSource, rows: np.ndarray | None) -> "Column":
        """Returns the column with the statistics and categories of some rows."""
        column = Column.describe(
            self.parse(table), rows, buckets=self.buckets, remarks=self.remarks
        )
        return replace(column, warnings=self.warnings, role=self.role)

    def with_remarks(self, *remarks: str) -> "Column":
        """Returns the column with further remarks."""
        return replace(self, remarks=(*self.remarks, *remarks))

    def with_warnings(self, *warnings: str) -> "Column":
        """Returns the column with further warnings, which are remarks as well."""
        column = self.with_remarks(*warnings)
        return replace(column, warnings=(*self.warnings, *warnings))

    @property
    def meaning(self) -> str:
        """What the column is, in a word or two."""
        if self.kind == "date":
            return "date"
        if self.kind == "categorical":
            return "hashed text" if self.buckets else "text"
        return "number" if self.notation is None else self.notation.kind

    @property
    def dtype(self) -> str:
        """The type of the column's values as an input of a model."""
        numeric = "float64" if self.precise else "float32"
        return {"numeric": numeric, "date": "int64"}.get(self.kind, "string")

    def parse(self, table: ColumnSource) -> ParsedColumn:
        """Reads this column of any table that has it."""
        check_columns_exist(table, [self.name], role="feature")
        notation = self.notation
        if self._has_whole_numbers:
            text = notation if isinstance(notation, TextNotation) else TextNotation()
            notation = replace(text, numbers=True)
        cells = self.cells(table)
        return parse_column(table, self.name, self.kind, notation, cells=cells)

    def cells(self, table: ColumnSource) -> Cells:
        """Returns the cells of this column of any table that has it."""
        return Cells.read(table, self.name).written_for(self.kind, self.notation)

    @property
    def _has_whole_numbers(self) -> bool:
        """Whether some categories beside texts are whole numbers, and none a code."""
        return any(text.isdigit() for text in self.categories) and not any(
            text.isdigit() and text[0] == "0" != text for text in self.categories
        )

    def check(self, table: ColumnSource) -> None:
        """Raises a `TableError` unless all cells of this column of a table are read."""
        parsed = self.parse(table)
        check_all_readable(self.cells(table), parsed)

    def values(self, table: ColumnSource) -> np.ndarray:
        """Returns this column of any table as an input `[n]` of a model.

        Missing, unreadable and infinite cells are NaN, `""` among texts (objects), or
        the least int64 among dates (seconds since 1970).
        """
        return self.parse(table).inputs(self.dtype)

    def to_dict(self) -> Config:
        """Returns the column as plain JSON values."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        notation = None if self.notation is None else self.notation.to_dict()
        return {**asdict(self), **lists, "notation": notation}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Column":
        """Creates a column from the result of `to_dict`, also of earlier versions."""
        tuples = {name: tuple(values.get(name, ())) for name in _LISTS}
        notation = notation_from_dict(values.get("notation"))
        return cls(**{**values, **tuples, "notation": notation})


def infer_column(
    table: ColumnSource,
    name: str,
    rows: np.ndarray | None = None,
    override: Override | None = None,
    *,
    required: bool = False,
) -> tuple[Column, ParsedColumn]:
    """Infers a column, with the statistics of some rows, and its parsed cells."""
    cells = Cells.read(table, name)
    if override is not None:
        cells = cells.as_written
    kind, notation, remarks = choose_notation(cells, override)
    buckets = 0
    if override is not None and override.kind == "hashed":
        buckets = int(override.options[0]) if override.options else _BUCKETS
    if override is not None and kind != "categorical":
        remarks += count_unreadable(cells, notation)
    parsed = parse_column(table, name, kind, notation, cells=cells)
    if override is None or cells.kind != "categorical":
        remarks += check_all_readable(cells, parsed)
    column = Column.describe(parsed, rows, buckets=buckets, remarks=remarks)
    if override is None and kind == "categorical":
        codes = remark_on_codes(parsed)
        column = column.with_remarks(
            *codes, *check_texts(parsed, column.buckets, required)
        )
    return column, parsed


def _describe_numbers(parsed: ParsedColumn, rows: np.ndarray | None) -> Config:
    known = _known_values(parsed, rows)
    scale = float(known.std())
    ordered = np.sort(known)
    single = ordered.astype(np.float32)
    low, high = float(ordered[0]), float(ordered[-1])
    size = max(abs(low), abs(high))
    constant = high - low <= _SMALLEST_RANGE * size or scale < _MIN_SCALE
    rounding = float(np.abs(ordered - single).max())
    is_lost = rounding > _LARGEST_ROUNDING * scale or scale <= _SMALLEST_SPREAD * size
    precise = is_lost and not constant
    return {
        "mean": float(known.mean()),
        "scale": 1.0 if constant else scale,
        "constant": constant,
        "edges": _quantile_edges(ordered if precise else single),
        "low": low,
        "high": high,
        "precise": precise,
    }


def _describe_dates(parsed: ParsedColumn, rows: np.ndarray | None) -> Config:
    known = _known_values(parsed, rows)
    days, second = np.divmod(known, _DAY)
    parts = {
        "month": days.astype("datetime64[D]").astype("datetime64[M]").astype(int) % 12,
        # The first day of 1970 was a Thursday.
        "weekday": (days + 3) % 7,
        "hour": second,
    }
    low, high = int(known.min()), int(known.max())
    passed = (known - low) / _DAY
    return {
        "mean": float(passed.mean()),
        "scale": float(passed.std()) if high > low else 1.0,
        "constant": low == high,
        "low": float(low),
        "high": float(high),
        "cycles": tuple(
            part for part, found in parts.items() if found.min() < found.max()
        ),
    }


def _known_values(parsed: ParsedColumn, rows: np.ndarray | None) -> np.ndarray:
    """Returns the values that are not missing in some rows, one at least."""
    values, missing = parsed.values, parsed.missing
    if rows is not None:
        values, missing = values[rows], missing[rows]
    known = drop_missing(values, missing)
    if not known.size:
        raise without_values(parsed.name, bool(parsed.missing.all()))
    return known


def _describe_texts(
    parsed: ParsedColumn, rows: np.ndarray | None, buckets: int
) -> Config:
    if buckets or len(parsed.texts) > MAX_CATEGORIES:
        return {"buckets": buckets or _BUCKETS}
    texts = parsed.texts.to_pylist()
    if texts == [""]:
        raise without_values(parsed.name, True)
    places = parsed.values if rows is None else parsed.values[rows]
    trained = np.flatnonzero(np.bincount(places))
    return {"categories": _sorted_categories([texts[place] for place in trained])}


def _sorted_categories(texts: list[str]) -> tuple[str, ...]:
    """Sorts texts; those that differ from a number on, such as `week 7`, by it."""
    found = {text: _NUMBERED.match(text) for text in texts if text}
    if len({match and match[1] for match in found.values()}) != 1:
        return tuple(sorted(texts))
    numbers = {text: int(match[2]) for text, match in found.items() if match}
    return tuple(sorted(texts, key=lambda text: (numbers.get(text, -1), text)))


def _quantile_edges(values: np.ndarray) -> tuple[float, ...]:
    """Returns distinct quantiles of sorted values in order; two need no curve."""
    by_rows = len(values) // _ROWS_PER_INTERVAL
    number = min(max(by_rows, _FEWEST_INTERVALS), _MOST_INTERVALS)
    places = np.linspace(0, len(values) - 1, number + 1)
    below = places.astype(np.int64)
    above = np.ceil(places).astype(np.int64)
    low, high = values[below].astype(np.float64), values[above]
    quantiles = low + (places - below) * (high - low)
    edges = np.unique(quantiles.astype(values.dtype))
    return tuple(edges.tolist()) if len(edges) > 2 else ()
