"""How many rows to predict have a value that the training rows did not have."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

# What is wrong with a cell, and how a sentence says it of some.
_KINDS = {
    "unreadable": "{} cannot be read, such as {}",
    "missing": "{} lack a value",
    "empty": "{} lack a value",
    "unseen": "{} have a category unseen in training, such as {}",
    "outside": "{} are outside the range of training, {}",
}


class ColumnFaults(NamedTuple):
    """The faults of the columns of rows to predict.

    A cell is `unreadable`, `missing` although no training row lacked a value, `empty`
    although some had one (if no row has), an `unseen` category, or `outside` the range
    of training.

    Attributes:
        num_rows: Number of rows.
        columns: For each column with a fault, the number of cells of each kind, and an
            example.

    Example:
    >>> ColumnFaults(3, {"x": {"missing": (2, "")}}).describe()
    ["Column 'x' is not as in training in 2 of 3 rows: 2 lack a value."]
    """

    num_rows: int
    columns: Mapping[str, Mapping[str, tuple[int, str]]]

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> "ColumnFaults":
        """Returns the faults of the rows of all parts."""
        num_rows, columns = 0, dict[str, dict[str, tuple[int, str]]]()
        for rows, faults in parts:
            num_rows += rows
            for name, kinds in faults.items():
                known = columns.setdefault(name, {})
                for kind, (number, example) in kinds.items():
                    before, first = known.get(kind, (0, example))
                    known[kind] = before + number, first
        return ColumnFaults(num_rows, columns)

    def describe(self) -> list[str]:
        """Returns a sentence about each column with a fault in most rows."""
        sentences = []
        for name, kinds in self.columns.items():
            total = sum(number for number, _ in kinds.values())
            if 2 * total <= self.num_rows:
                continue
            parts = "; ".join(
                text.format(*kinds[kind])
                for kind, text in _KINDS.items()
                if kind in kinds
            )
            rows = "1 row" if self.num_rows == 1 else f"{self.num_rows} rows"
            sentences.append(
                f"Column {name!r} is not as in training in {total} of {rows}: {parts}."
            )
        return sentences

    def useless(self, *, blank: bool) -> list[str]:
        """Returns the columns of which a model knows no cell."""
        found = []
        for name, kinds in self.columns.items():
            useless = sum(
                number for kind, (number, _) in kinds.items() if kind != "outside"
            )
            decisive = {"unreadable", "unseen"} | ({"missing"} if blank else set())
            if useless == self.num_rows and decisive & kinds.keys():
                found.append(name)
        return found
