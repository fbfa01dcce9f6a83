"""The description of one column of a table, with which a model reads the column."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tfbbb.base.task import MAX_CATEGORIES
from tfbbb.tables.column_names import check_column_exists
from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.notations import (
    Notation,
    infer_marks,
    infer_notation,
    notation_from_dict,
)
from tfbbb.tables.notations.boolean import BooleanNotation
from tfbbb.tables.notations.date import DateNotation
from tfbbb.tables.notations.duration import DurationNotation
from tfbbb.tables.notations.inference import MOSTLY
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.ordered import OrderedNotation
from tfbbb.tables.notations.text import TextNotation
from tfbbb.tables.override import Override
from tfbbb.tables.table_error import ColumnError
from tfbbb.tables.values import (
    MISSING_DATE,
    Kind,
    column_kind,
    first_row,
    is_boolean,
    is_duration,
    read_dates,
    read_numbers,
    read_texts,
)

# A column of more distinct texts than a category usually has may be one of numbers or
# dates with a few wrong cells.
_MAX_USUAL_CATEGORIES = 20
# Of more categories than this, in more than half of the rows, a column may be an
# identifier; of texts that all differ in so many rows it is one.
_MAX_OF_NO_IDENTIFIER = 50
_FEWEST_IDENTIFIERS = 20
# Texts of so many words and characters on average are sentences.
_WORDS_OF_A_SENTENCE, _LENGTH_OF_A_SENTENCE = 4, 30
_BUCKETS = 256
# Between the edges of a column: by rows, from the least to the most.
_FEWEST_INTERVALS, _MOST_INTERVALS = 12, 48
_ROWS_PER_INTERVAL = 200
_MIN_SCALE = float(np.finfo(np.float32).tiny)
_DAY = 86400


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
        low: The least value of the training rows, in single precision; of dates in
            seconds since 1970. None for a categorical column, and if unknown.
        high: The greatest value of the training rows.
        buckets: Number of buckets for the texts of a column with more categories than
            can be listed; 0 for none.
        cycles: Of a date, the parts of the calendar that differ between its values:
            `"month"`, `"weekday"` and `"hour"`.
        remarks: Sentences on how the column was understood.
        num_missing: Number of missing values in the table.
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

    @classmethod
    def infer(
        cls,
        table: ColumnSource,
        name: str,
        rows: np.ndarray | None,
        *,
        as_text: bool = False,
        override: Override | None = None,
        required: bool = False,
    ) -> "Column":
        """Infers a column from a table; kind and `missing` come from all rows.

        Args:
            table: Table with a column of this name.
            name: Name of the column.
            rows: Indices of the rows that give statistics and categories, or None
                for all.
            as_text: Whether the texts are categories, even if they look like numbers.
            override: What the column is, in place of what its cells suggest.
            required: Whether to accept texts that all differ.

        Raises:
            TableError: The column holds values of another type, an infinite value, no
                value at all, sentences or other texts that all differ, or texts of
                which most but not all are numbers or dates.
        """
        if as_text:
            override = Override("text")
        notation, remarks = choose_notation(table, name, override)
        column = cls(name, "categorical", notation=notation, remarks=remarks)
        if override is not None and override.kind == "hashed":
            buckets = int(override.options[0]) if override.options else _BUCKETS
            column = replace(column, buckets=buckets)
        elif not isinstance(notation, TextNotation) and (
            notation is not None or column_kind(table, name) != "categorical"
        ):
            date = isinstance(notation, DateNotation)
            column = replace(column, kind="date" if date else "numeric")
        if override is not None and column.kind != "categorical":
            column = _count_unreadable(column, table)
        column = column.refitted(table, rows)
        if override is None and column.kind == "categorical":
            column = _check_texts(column, table, required)
        return column

    @classmethod
    def from_numbers(
        cls, name: str, values: np.ndarray, rows: np.ndarray | None = None
    ) -> "Column":
        """Describes a column of numbers `[n]`, NaN for missing; see `infer`."""
        missing = np.isnan(values)
        known = values if rows is None else values[rows]
        known = known[~np.isnan(known)]
        if not known.size:
            raise _without_values(name, bool(missing.all()))
        # Models compute in single precision: values equal in it are constant.
        single = known.astype(np.float32)
        scale = float(known.std())
        constant = bool(single.min() == single.max()) or scale < _MIN_SCALE
        return cls(
            name=name,
            kind="numeric",
            missing=bool(missing.any()),
            num_missing=int(missing.sum()),
            mean=float(known.mean()),
            scale=1.0 if constant else scale,
            constant=constant,
            edges=_quantile_edges(single),
            low=float(single.min()),
            high=float(single.max()),
        )

    @classmethod
    def from_dates(
        cls, name: str, values: np.ndarray, rows: np.ndarray | None = None
    ) -> "Column":
        """Describes a column of dates `[n]` in seconds since 1970; see `infer`."""
        missing = values == MISSING_DATE
        known = values if rows is None else values[rows]
        known = known[known != MISSING_DATE]
        if not known.size:
            raise _without_values(name, bool(missing.all()))
        days, second = np.divmod(known, _DAY)
        parts = {
            "month": days.astype("datetime64[D]").astype("datetime64[M]").astype(int)
            % 12,
            # The first day of 1970 was a Thursday.
            "weekday": (days + 3) % 7,
            "hour": second,
        }
        low, high = int(known.min()), int(known.max())
        passed = (known - low) / _DAY
        scale = float(passed.std())
        return cls(
            name=name,
            kind="date",
            missing=bool(missing.any()),
            num_missing=int(missing.sum()),
            mean=float(passed.mean()),
            scale=scale if high > low else 1.0,
            constant=low == high,
            low=float(low),
            high=float(high),
            cycles=tuple(
                part for part, found in parts.items() if found.min() < found.max()
            ),
        )

    @classmethod
    def from_texts(
        cls, name: str, values: pa.ChunkedArray, rows: np.ndarray | None = None
    ) -> "Column":
        """Describes a column of texts, `""` for missing; see `infer`."""
        distinct = pa.compute.unique(values)
        texts = distinct.to_pylist() if len(distinct) <= MAX_CATEGORIES else None
        if texts == [""]:
            raise _without_values(name, True)
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
            num_missing=_count_empty(values),
            categories=tuple(sorted(texts[place] for place in trained)),
        )

    def refitted(self, table: ColumnSource, rows: np.ndarray | None) -> "Column":
        """Returns the column with the statistics and categories of some rows.

        Args:
            table: Table with a column of this name.
            rows: Indices of the rows, or None for all.
        """
        if self.kind == "numeric":
            numbers = read_numbers(table, self.name, self.notation)
            fitted = Column.from_numbers(self.name, numbers, rows)
        elif self.kind == "date":
            dates = read_dates(table, self.name, self.notation)
            fitted = Column.from_dates(self.name, dates, rows)
        else:
            texts = read_texts(table, self.name, self.notation)
            fitted = self._fit_texts(texts, rows)
        return replace(fitted, notation=self.notation, remarks=self.remarks)

    def _fit_texts(self, texts: pa.ChunkedArray, rows: np.ndarray | None) -> "Column":
        buckets = self.buckets
        if not buckets and pa.compute.count_distinct(texts).as_py() > MAX_CATEGORIES:
            buckets = _BUCKETS
        if not buckets:
            return Column.from_texts(self.name, texts, rows)
        missing = _count_empty(texts)
        return Column(
            self.name,
            "categorical",
            missing > 0,
            buckets=buckets,
            num_missing=missing,
        )

    @property
    def meaning(self) -> str:
        """What the column is, in a word or two."""
        if self.kind == "date":
            return "date"
        if self.kind == "categorical":
            return "hashed text" if self.buckets else "text"
        if isinstance(self.notation, BooleanNotation):
            return "boolean"
        if isinstance(self.notation, DurationNotation):
            return "duration"
        return "ordered" if isinstance(self.notation, OrderedNotation) else "number"

    @property
    def dtype(self) -> str:
        """The type of the column's values as an input of a model."""
        return {"numeric": "float32", "date": "int64"}.get(self.kind, "string")

    def values(self, table: ColumnSource) -> np.ndarray:
        """Reads this column of a table.

        Args:
            table: Any table with a column of this name.

        Returns:
            Array `[n]`: float32 with NaN for missing, text (object) with `""` for
            missing, or of dates int64 seconds since 1970 with the least int64 for
            missing.

        Raises:
            TableError: The table lacks the column, or a value is of the wrong kind or
                infinite.
        """
        check_column_exists(table, self.name, role="feature")
        if self.kind == "numeric":
            return read_numbers(table, self.name, self.notation).astype(np.float32)
        if self.kind == "date":
            return read_dates(table, self.name, self.notation)
        return read_texts(table, self.name, self.notation).to_numpy()

    def to_dict(self) -> dict[str, Any]:
        """Returns the column as plain JSON values."""
        names = ("categories", "edges", "cycles", "remarks")
        lists = {name: list(getattr(self, name)) for name in names}
        notation = None if self.notation is None else self.notation.to_dict()
        return {**asdict(self), **lists, "notation": notation}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Column":
        """Creates a column from the result of `to_dict`, also of earlier versions."""
        names = ("categories", "edges", "cycles", "remarks")
        tuples = {name: tuple(values.get(name, ())) for name in names}
        notation = notation_from_dict(values.get("notation"))
        return cls(**{**values, **tuples, "notation": notation})


def choose_notation(
    table: ColumnSource, name: str, override: Override | None
) -> tuple[Notation | None, tuple[str, ...]]:
    """Returns the notation of a column and remarks; None for plain numbers or texts."""
    kind = column_kind(table, name)
    asked = None if override is None else override.kind
    options = () if override is None else override.options
    if asked in ("text", "hashed"):
        if kind != "categorical":
            return TextNotation(numbers=True), ()
        marks = infer_marks(Texts.of(table.column(name))).notation
        # Someone who asks for texts means "-" as one.
        return (None if getattr(marks, "dash", "") else marks), ()
    if asked == "ordered":
        return OrderedNotation(options), ()
    if asked == "boolean":
        notation = BooleanNotation(lenient=True)
        if kind == "categorical":
            distinct = Texts.of(table.column(name)).distinct()
            _check_readable(name, distinct, notation, asked)
        return notation, ()
    if kind != "categorical":
        if kind == "date" or asked == "date":
            epoch = "milliseconds" if options == ("unix-ms",) else "seconds"
            return DateNotation(epoch=epoch), ()
        duration = is_duration(table, name) or asked == "duration"
        if duration:
            return DurationNotation(), ()
        return BooleanNotation() if is_boolean(table, name) else None, ()
    texts = Texts.of(table.column(name))
    distinct = texts.distinct()
    if asked is not None:
        return _asked_notation(name, distinct, asked, options)
    found = infer_notation(distinct)
    if found.notation is None or found.share < 1.0:
        if found.notation is not None and len(distinct) > _MAX_USUAL_CATEGORIES:
            unreadable = texts.parse(found.notation).unreadable
            known = len(unreadable) - texts.missing().sum()
            if known - unreadable.sum() >= MOSTLY * known:
                raise _mostly(name, table, unreadable, found.notation)
        found = infer_marks(texts)
    return found.notation, tuple(map(_sentence, found.remarks))


def _asked_notation(
    name: str, distinct: pa.Array, asked: str, options: tuple[str, ...]
) -> tuple[Notation, tuple[str, ...]]:
    """Returns the notation that an override asks for.

    Raises:
        ColumnError: No text is in the notation.
    """
    notation: Notation
    remarks: tuple[str, ...] = ()
    found = infer_notation(distinct, asked)
    if asked == "date" and options and not options[0].startswith("unix"):
        notation = DateNotation(options[0], lenient=True)  # type: ignore[arg-type]
    elif asked == "duration":
        notation = DurationNotation(options[0] if options else "hours", lenient=True)
    elif found.notation is None:
        raise ColumnError(
            f"Column {name!r} cannot be read as a {asked}, as asked: its texts, such "
            f"as {_example(distinct)}, cannot be read as one.",
            name,
        )
    else:
        notation = replace(found.notation, lenient=True)  # type: ignore[type-var]
        remarks = tuple(map(_sentence, found.remarks))
    if isinstance(notation, NumberNotation):
        notation = _with_options(notation, options)
        if options:
            remarks = ()
    _check_readable(name, distinct, notation, asked)
    return notation, remarks


def _check_readable(
    name: str, distinct: pa.Array, notation: Notation, asked: str
) -> None:
    """Raises `ColumnError` if most texts are not in the notation that is asked for."""
    if not len(distinct):
        return
    unreadable = notation.parse(distinct).unreadable
    if unreadable.all():
        raise ColumnError(
            f"Column {name!r} cannot be read as a {asked}, as asked: none of its "
            f"texts, such as {_example(distinct)}, is one.",
            name,
        )
    if 2 * unreadable.sum() > len(distinct):
        wrong = distinct.filter(pa.array(unreadable))
        raise ColumnError(
            f"Column {name!r} cannot be read as a {asked}, as asked: "
            f"{len(wrong)} of its {len(distinct)} texts cannot be, such as "
            f"{_example(wrong)}.",
            name,
        )


def _with_options(notation: NumberNotation, options: tuple[str, ...]) -> NumberNotation:
    if "decimal-comma" in options and notation.decimal == ".":
        thousands = "." if notation.thousands in ("", ",") else notation.thousands
        notation = replace(notation, decimal=",", thousands=thousands)
    if "decimal-point" in options and notation.decimal == ",":
        thousands = "," if notation.thousands in ("", ".") else notation.thousands
        notation = replace(notation, decimal=".", thousands=thousands)
    if "currency" in options:
        notation = replace(notation, currency=True)
    return replace(notation, percent="all") if "percent" in options else notation


def _count_unreadable(column: Column, table: ColumnSource) -> Column:
    """Adds a remark on unreadable cells; refuses unknown texts of an order."""
    name, notation = column.name, column.notation
    if notation is None or column_kind(table, name) != "categorical":
        return column
    texts = Texts.of(table.column(name))
    wrong = texts.parse(notation).unreadable
    if not wrong.any():
        return column
    row = first_row(wrong)
    cell = texts.values[row - 1].as_py()
    if isinstance(notation, OrderedNotation):
        raise ColumnError(
            f"Column {name!r} has the text {cell!r} in row {row}, which is not among "
            f"the ordered texts {', '.join(notation.levels)}; add it to them, in its "
            "place.",
            name,
        )
    number = int(wrong.sum())
    cells = "1 cell counts" if number == 1 else f"{number} cells count"
    remark = f"{cells} as missing, such as {cell!r} in row {row}."
    return replace(column, remarks=(*column.remarks, remark))


def _check_texts(column: Column, table: ColumnSource, required: bool) -> Column:
    """Adds remarks to a column of texts.

    Raises:
        ColumnError: The texts are sentences, or all of them differ.
    """
    texts = read_texts(table, column.name, column.notation)
    known = texts.filter(pa.compute.not_equal(texts, ""))
    distinct = pa.compute.unique(known)
    many, number = len(distinct), len(known)
    if number >= _FEWEST_IDENTIFIERS and 2 * many > number:
        length = pa.compute.mean(pa.compute.utf8_length(distinct)).as_py()
        spaces = pa.compute.mean(pa.compute.count_substring(distinct, " ")).as_py()
        if spaces + 1 >= _WORDS_OF_A_SENTENCE and length >= _LENGTH_OF_A_SENTENCE:
            raise ColumnError(
                f"Column {column.name!r} holds free text, which a model of columns "
                "cannot read; turn it into columns of numbers or categories, such as "
                "whether it mentions a word, or leave it out: "
                f"columns={{{column.name!r}: 'ignore'}} (--ignore).",
                column.name,
                unusable=True,
            )
        if many == number and not required:
            raise ColumnError(
                f"Column {column.name!r} has a different text in each row, like an "
                "identifier, so a model learns nothing from it.",
                column.name,
                unusable=True,
            )
    remarks = list(column.remarks)
    if many > _MAX_OF_NO_IDENTIFIER and 2 * many > number:
        remarks.append(
            f"It has {many} distinct texts in {texts.length()} rows and looks like an "
            "identifier."
        )
    if column.buckets:
        remarks.append(
            f"Its {many} distinct texts are distributed over {column.buckets} buckets "
            "by a hash; texts of one bucket are not told apart."
        )
    return replace(column, remarks=tuple(remarks))


def _count_empty(texts: pa.ChunkedArray) -> int:
    return pa.compute.sum(pa.compute.equal(texts, "")).as_py() or 0


def _mostly(
    name: str, table: ColumnSource, unreadable: np.ndarray, notation: Notation
) -> ColumnError:
    row = first_row(unreadable)
    kind = notation.kind
    return ColumnError(
        f"Column {name!r} is mostly {kind}s, but has the text "
        f"{table.column(name)[row - 1].as_py()!r} in row {row}; correct the cell, "
        f"empty it if the {kind} is missing, or say in `columns` (--column) what the "
        f"column is: {kind}, to count such cells as missing, or text.",
        name,
        may_be_text=True,
    )


def _without_values(name: str, everywhere: bool) -> ColumnError:
    where = "" if everywhere else " in the training rows"
    return ColumnError(
        f"Column {name!r} has no values{where}; leave it out.",
        name,
        unusable=everywhere,
    )


def _sentence(remark: str) -> str:
    return f"{remark[0].upper()}{remark[1:]}."


def _example(texts: pa.Array) -> str:
    return repr(texts[0].as_py()) if len(texts) else "none"


def _quantile_edges(values: np.ndarray) -> tuple[float, ...]:
    """Returns distinct quantiles of float32 values; two values need no curve."""
    by_rows = len(values) // _ROWS_PER_INTERVAL
    number = min(max(by_rows, _FEWEST_INTERVALS), _MOST_INTERVALS)
    quantiles = np.quantile(values, np.linspace(0, 1, number + 1))
    edges = np.unique(quantiles.astype(np.float32))
    return tuple(edges.tolist()) if len(edges) > 2 else ()
