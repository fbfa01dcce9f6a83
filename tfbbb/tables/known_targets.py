"""The targets of rows whose density is asked for, although some have none to use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfbbb.base.texts import abbreviate
from tfbbb.tables.cells import Cells
from tfbbb.tables.column_names import ColumnSource, check_columns_exist
from tfbbb.tables.notations import Notation
from tfbbb.tables.parsed_column import ParsedColumn
from tfbbb.tables.target import (
    class_indices,
    missing_values,
    parse_classes,
    written_as_classes,
)

_KINDS = {"number": "a number", "duration": "a duration", "boolean": "a boolean"}


class UnusableTarget(NamedTuple):
    """A target that a row has, but that has no density."""

    cell: object
    reason: str

    @classmethod
    def unseen(cls, label: object) -> "UnusableTarget":
        """Returns the target of a class that training did not have."""
        return cls(label, "is a class unseen in training")

    @property
    def warning(self) -> str:
        """The warning of the row."""
        return f"The target {abbreviate(self.cell)} {self.reason}; it has no log_prob."


@dataclass(frozen=True)
class KnownTargets:
    """The targets of rows `[n]` or `[n, k]`, NaN or -1 where there is none to use."""

    values: np.ndarray
    unusable: Mapping[int, UnusableTarget]

    @property
    def known(self) -> np.ndarray:
        """Which rows [n] have a target with a density."""
        if self.values.dtype.kind == "i":
            return self.values >= 0
        return ~np.isnan(self.values.reshape(len(self.values), -1)).any(axis=1)

    @property
    def missing(self) -> np.ndarray:
        """Which rows [n] have no target."""
        missing = ~self.known
        missing[list(self.unusable)] = False
        return missing

    @property
    def filled(self) -> np.ndarray:
        """The targets, with that of the first known row where there is none to use."""
        known = self.known
        return self.values[np.where(known, np.arange(len(known)), np.argmax(known))]

    def within(self, inside: np.ndarray, description: str) -> "KnownTargets":
        """Returns the targets without numbers that the likelihood excludes."""
        outside = self.known & ~inside.reshape(len(inside), -1).all(axis=1)
        if not outside.any():
            return self
        reason = f"is outside of what the model predicts ({description})"
        unusable = {**self.unusable}
        for row in np.flatnonzero(outside):
            target = self.values[row]
            cell = target.item() if target.size == 1 else target.tolist()
            unusable[int(row)] = UnusableTarget(cell, reason)
        values = self.values.copy()
        values[outside] = np.nan
        return KnownTargets(values, dict(sorted(unusable.items())))


def read_known_targets(
    table: ColumnSource,
    names: Sequence[str],
    classes: Sequence[str] | None,
    notations: Sequence[Notation | None],
) -> KnownTargets:
    """Reads the targets of a table as numbers [n, k], or as class indices [n]."""
    check_columns_exist(table, names, role="target")
    pairs = list(zip(names, notations, strict=True))
    if classes is not None:
        return _read_known_classes(table, *pairs[0], classes)
    found = [
        read_known_numbers(Cells.read(table, name).written_for("numeric", x), x)
        for name, x in pairs
    ]
    unusable = {row: x for each in found for row, x in each.unusable.items()}
    values = np.stack([each.values for each in found], axis=-1)
    return KnownTargets(values, dict(sorted(unusable.items())))


def _read_known_classes(
    table: ColumnSource, name: str, notation: Notation | None, classes: Sequence[str]
) -> KnownTargets:
    cells = Cells.read(table, name).written_for("numeric", notation)
    cells = written_as_classes(cells, classes)
    parsed = parse_classes(cells, "categorical", notation)
    missing = missing_values(table, name, notation)
    values = np.where(missing, -1, class_indices(parsed, classes)).astype(np.int32)
    unseen = np.flatnonzero((values < 0) & ~missing).tolist()
    texts = parsed.texts.take(pa.array(parsed.values[unseen])).to_pylist()
    unusable = map(UnusableTarget.unseen, texts)
    return KnownTargets(values, dict(zip(unseen, unusable, strict=True)))


def read_known_numbers(cells: Cells, notation: Notation | None) -> KnownTargets:
    """Reads targets that are numbers in a notation; None for plain numbers."""
    parsed = ParsedColumn.parse(cells, "numeric", notation)
    unusable, kind = {}, "number" if notation is None else notation.kind
    if parsed.unreadable is not None:
        for row in np.flatnonzero(parsed.unreadable).tolist():
            cell, reason = cells.values[row].as_py(), "is infinite in single precision"
            if isinstance(cell, str):
                reason = f"is not {_KINDS.get(kind, 'written as in training')}"
            unusable[row] = UnusableTarget(cell, reason)
    return KnownTargets(parsed.values, unusable)


def describe_unusable(
    name: str, unusable: Mapping[int, UnusableTarget], num_rows: int, end: str
) -> list[str]:
    """Returns a sentence for each reason of unusable targets, which counts its rows."""
    sentences = []
    for reason in dict.fromkeys(each.reason for each in unusable.values()):
        rows = [row for row, each in unusable.items() if each.reason == reason]
        have = "has" if len(rows) == 1 else "have"
        sentences.append(
            f"{len(rows)} of {num_rows} rows {have} a {name!r} that {reason}, such as "
            f"{abbreviate(unusable[rows[0]].cell)} in row {rows[0] + 1}; {end}."
        )
    return sentences
