"""Writes the rows of a file with their predictions into a file of the same format."""

import io
import math
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from service.inspection_process.cells import format_cell
from service.shared.file_rows import FileTask, PredictedRows
from service.shared.json_types import JsonList
from tfbbb.tables.answer_digits import with_sensible_digits
from tfbbb.tables.dialect import Dialect
from tfbbb.tables.scan import TableScan
from tfbbb.tables.table_error import TableError
from tfbbb.tables.writing import write_rows

_SHOWN = 20
# Columns of the answer of the API whose cells are texts.
_TEXTS = re.compile(r"class|warnings|prediction_sets_.*")
# Of numbers: what the file has, in this order, and by what name. A variance becomes a
# standard deviation, in the units of the target.
_OF_NUMBERS = {
    "mean": "mean",
    "standard_deviation": "standard_deviation",
    "lower": "lower",
    "upper": "upper",
    "epistemic": "epistemic_standard_deviation",
    "aleatoric": "aleatoric_standard_deviation",
}
_OF_CLASSES = ("class", "probabilities", "entropy", "mutual_information")
_LAST = ("familiarity", "warnings")
_LEFT_OUT = ("variance", "mean_standard_error", "between_members")


class PredictedFile:
    """The rows of a file and their predictions."""

    def __init__(self, scan: TableScan, task: FileTask) -> None:
        self._scan, self._task = scan, task
        self._answers: list[pa.Table] = []

    def add(self, answer: bytes) -> None:
        """Adds the predictions of the next rows, as the API writes them in CSV."""
        names = next(pa.csv.open_csv(io.BytesIO(answer))).schema.names
        kinds = {
            name: pa.string() if _TEXTS.fullmatch(name) else pa.float64()
            for name in names
        }
        # A class may be `NA`.
        options = pa.csv.ConvertOptions(
            column_types=kinds, strings_can_be_null=True, null_values=[""]
        )
        parsing = pa.csv.ParseOptions(newlines_in_values=True)
        self._answers.append(
            pa.csv.read_csv(
                io.BytesIO(answer), convert_options=options, parse_options=parsing
            )
        )

    def write(self) -> PredictedRows:
        """Writes the file; returns some of its rows."""
        task = self._task
        answers = _arranged(pa.concat_tables(self._answers))
        by, order = _doubt(answers)
        if task.written not in ("parquet", "arrow"):
            answers = with_sensible_digits(answers)
        given = self._given()
        names = _without_clash(given.schema.names, answers.column_names)
        shown = _ShownRows(order)
        joined = _join(given, names, answers, shown)
        first = next(joined)

        def batches() -> Iterator[pa.RecordBatch]:
            yield first
            yield from joined

        dialect = self._scan.dialect
        with task.output.open("wb") as file:
            write_rows(
                pa.RecordBatchReader.from_batches(first.schema, batches()),
                file,
                task.written,
                dialect if isinstance(dialect, Dialect) else None,
            )
        remarks = [] if dialect is None or dialect.is_plain else [dialect.describe()]
        return PredictedRows(
            given=names,
            predicted=answers.column_names,
            first=shown.first,
            doubtful=shown.doubtful(),
            doubtful_by=by,
            remarks=remarks,
        )

    def _given(self) -> TableScan:
        """Returns the rows as the file has them: the texts of CSV as they are."""
        if not isinstance(self._scan.dialect, Dialect):
            return self._scan
        texts = TableScan(
            self._task.path,
            format=self._task.format,
            text_columns=self._scan.schema.names,
        )
        if texts.num_rows != self._scan.num_rows:
            raise TableError(
                f"{self._task.path} has another number of rows when its cells are read "
                "as texts; write it as Parquet or Excel."
            )
        return texts


class _ShownRows:
    """Collects the rows that people see while all of them are written."""

    def __init__(self, order: np.ndarray) -> None:
        self._order = order
        self._wanted = set(order.tolist())
        self._found: dict[int, JsonList] = {}
        self.first: list[JsonList] = []

    def add(self, batch: pa.RecordBatch, start: int) -> None:
        for row in range(min(batch.num_rows, max(0, _SHOWN - start))):
            self.first.append(_cells(batch, row, start))
        stop = start + batch.num_rows
        for index in (row for row in self._wanted if start <= row < stop):
            self._found[index] = _cells(batch, index - start, start)

    def doubtful(self) -> list[JsonList]:
        return [self._found[index] for index in self._order.tolist()]


def _cells(batch: pa.RecordBatch, row: int, start: int) -> JsonList:
    cells = (format_cell(column[row].as_py()) for column in batch.columns)
    return [start + row + 1, *cells]


def _join(
    given: TableScan, names: list[str], answers: pa.Table, shown: _ShownRows
) -> Iterator[pa.RecordBatch]:
    at = 0
    for batch in given.batches():
        found = answers.slice(at, batch.num_rows).combine_chunks()
        columns = [*batch.columns, *(column.chunk(0) for column in found.columns)]
        joined = pa.RecordBatch.from_arrays(columns, [*names, *found.column_names])
        shown.add(joined, at)
        at += batch.num_rows
        yield joined


def _without_clash(names: list[str], predicted: list[str]) -> list[str]:
    """Returns the names; one that a prediction has gets `_given` at its end."""
    free: list[str] = []
    for name in names:
        new = name
        while new in predicted or new in free or (new != name and new in names):
            new += "_given"
        free.append(new)
    return free


def _arranged(answers: pa.Table) -> pa.Table:
    """Returns the columns that the file gets, in their order."""
    names = answers.column_names
    is_of_numbers = "mutual_information" not in names
    columns: dict[str, pa.ChunkedArray] = {}
    if is_of_numbers:
        # Several targets have numbers at the ends of their names.
        targets = [name[4:] for name in names if re.fullmatch(r"mean(_\d+)?", name)]
        for target in targets:
            for start, new in _OF_NUMBERS.items():
                for name in _of_target(names, start, target):
                    values = answers[name]
                    if start in ("epistemic", "aleatoric"):
                        values = pc.sqrt(values)
                    level = name.removeprefix(start).removesuffix(target)
                    one = len(_of_target(names, start, target)) == 1
                    columns[new + ("" if one else level) + target] = values
    else:
        for start in _OF_CLASSES:
            for name in names:
                if name == start or name.startswith(f"{start}_"):
                    new = name.replace("probabilities_", "probability_", 1)
                    columns[new] = answers[name]
    known = (*_OF_NUMBERS, *_LEFT_OUT, *_LAST, *_OF_CLASSES)
    known_start = re.compile(rf"({'|'.join(known)})(_.*)?")
    for name in names:
        if not known_start.fullmatch(name):
            columns[name] = answers[name]
    for name in _LAST:
        # Most files have no row with a warning.
        if name in names and answers[name].null_count < len(answers):
            columns[name] = answers[name]
    return pa.table(columns)


def _of_target(names: list[str], start: str, target: str) -> list[str]:
    """Returns the columns of an output and a target, one or one per level."""
    pattern = re.compile(rf"{start}(_(0\.\d+|[\d.]+e-\d+))?{target}")
    return [name for name in names if pattern.fullmatch(name)]


def _doubt(answers: pa.Table) -> tuple[str, np.ndarray]:
    """Returns what makes rows doubtful, and the indices of the most doubtful ones."""
    names = answers.column_names
    if "familiarity" in names:
        by, doubt = "the least familiar", -_floats(answers["familiarity"])
    elif "entropy" in names:
        by, doubt = "the most open", _floats(answers["entropy"])
    else:
        name = next(name for name in names if name.startswith("standard_deviation"))
        by, doubt = "the widest", _floats(answers[name])
    doubt = np.where(np.isnan(doubt), math.inf, doubt)
    return by, np.argsort(-doubt, kind="stable")[:_SHOWN]


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = column.to_numpy().astype(np.float64)
    return values
