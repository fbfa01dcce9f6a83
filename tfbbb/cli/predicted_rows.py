"""Predictions of the rows of a table, block by block, by a model or by a service."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute
from rich.progress import MofNCompleteColumn

from tfbbb.cli.notes import echo_note
from tfbbb.cli.options import Asked
from tfbbb.cli.printing import output_table, with_digits_for
from tfbbb.cli.progress import terminal_bar
from tfbbb.cli.table_targets import refuse_without_targets
from tfbbb.tables.plain_values import typed_table
from tfbbb.tables.scan import Ask, TableScan, predict_rows
from tfbbb.tables.stored_table import SpooledTable
from tfbbb.tables.target import KnownTargets, UnusableTarget, describe_unusable

_FEW_ROWS = 2048
# The rows of a block, and the table of their predictions.
Predicted = tuple[pa.Table, pa.Table]


class TargetColumn:
    """The targets of a table, read block by block."""

    def __init__(self, name: str, read: Callable[[pa.Table], KnownTargets]) -> None:
        self._name, self._read = name, read
        self._unusable: dict[int, UnusableTarget] = {}
        self._num_rows = 0
        self._has_one = False

    def read(self, block: pa.Table) -> KnownTargets:
        """Returns the targets of the next rows."""
        targets = self._read(block)
        for row, target in targets.unusable.items():
            self._unusable[self._num_rows + row] = target
        self._num_rows += block.num_rows
        self._has_one |= not targets.missing.all()
        return targets

    def check(self) -> None:
        """Notes how many targets have no density, and why; one row needs a target."""
        if not self._has_one:
            refuse_without_targets(self._name, {}, self._num_rows)
        end = "such a row has no log_prob"
        for note in describe_unusable(self._name, self._unusable, self._num_rows, end):
            echo_note(note)


def with_progress(scan: TableScan, ask: Ask) -> Iterator[Predicted]:
    """Yields the rows of a table with their predictions, and shows the progress."""
    is_short = scan.num_rows <= _FEW_ROWS
    with terminal_bar("rows", MofNCompleteColumn(), is_short=is_short) as progress:
        task = progress.add_task("", total=scan.num_rows)
        for block, answers in predict_rows(scan, ask):
            yield block, answers
            progress.advance(task, answers.num_rows)


def write_predictions(
    predicted: Iterable[Predicted],
    asked: Asked,
    used: Collection[str | None],
    targets: TargetColumn | None,
) -> tuple[int, int]:
    """Writes rows with their predictions; returns how many have a warning, and all."""
    with SpooledTable() as given, SpooledTable() as answered:
        for block, answers in predicted:
            kept = may_be_kept(block.schema, used, keep=asked.keep)
            given.append(block.select(kept))
            answered.append(with_digits_for(asked.output, answers))
        if targets is not None:
            targets.check()
        table = answered.table()
        num_rows: int = table.num_rows
        warned: int = num_rows - table["warnings"].null_count
        if not warned:
            table = table.drop_columns("warnings")
        output_table(
            table,
            asked.output,
            lambda answers: with_kept_columns(
                answers, given.table(), used, keep=asked.keep
            ),
        )
    return warned, num_rows


def with_unusable(
    warnings: Sequence[Sequence[str]],
    unusable: Mapping[int, UnusableTarget],
    rows: range,
) -> list[list[str]]:
    """Adds the warnings of targets without a density to those of some rows."""
    found = [list(sentences) for sentences in warnings]
    for row, target in unusable.items():
        if row in rows:
            found[row - rows.start].append(target.warning)
    return found


def densities(log_prob: np.ndarray | None, known: np.ndarray) -> np.ndarray:
    """Returns log densities, NaN in rows without a target to use."""
    return np.where(known, np.nan if log_prob is None else log_prob, np.nan)


def with_kept_columns(
    predictions: pa.Table, table: pa.Table, used: Collection[str | None], *, keep: bool
) -> pa.Table:
    """Puts columns of the given table before the predictions of its rows."""
    kept = {}
    others = [name for name in table.column_names if keep or name not in used]
    table = typed_table(table.select(others))
    for name in may_be_kept(table.schema, used, keep=keep):
        if not keep and not _tells_rows_apart(table[name]):
            continue
        new = name
        while new in predictions.column_names or new in kept:
            new += "_given"
        kept[new] = table[name]
    answers = dict(zip(predictions.column_names, predictions.columns, strict=True))
    return pa.table({**kept, **answers})


def may_be_kept(
    schema: pa.Schema, used: Collection[str | None], *, keep: bool
) -> list[str]:
    """Returns the names of the columns that are kept if their values allow."""
    return [
        field.name
        for field in schema
        if keep or (field.name not in used and _is_text_or_integer(field.type))
    ]


def _is_text_or_integer(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(text or pa.types.is_integer(kind))


def _tells_rows_apart(column: pa.ChunkedArray) -> bool:
    return not column.null_count and bool(
        pa.compute.count_distinct(column).as_py() == len(column)
    )
