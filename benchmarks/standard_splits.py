"""Regression tables with standard splits, in the layout of `uci`."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from program import DataError

KEYS = ("data", "index_features", "index_target", "train_idx", "test_idx")
_SMOKE_ROWS = 120


@dataclass(frozen=True)
class Table:
    """One set with its splits."""

    name: str
    path: Path

    @cached_property
    def arrays(self) -> Mapping[str, np.ndarray]:
        with np.load(self.path, allow_pickle=False) as archive:
            return dict(archive)

    @cached_property
    def digest(self) -> str:
        """Identifies the rows and the splits."""
        found = hashlib.sha256()
        for key in KEYS:
            found.update(np.ascontiguousarray(self.arrays[key]).tobytes())
        return found.hexdigest()[:12]

    @property
    def num_splits(self) -> int:
        return len(self.arrays["train_idx"])

    @cached_property
    def x(self) -> np.ndarray:
        columns = np.atleast_1d(self.arrays["index_features"])
        return np.asarray(self.arrays["data"], float)[:, columns]

    @cached_property
    def y(self) -> np.ndarray:
        column = int(self.arrays["index_target"])
        return np.asarray(self.arrays["data"], float)[:, column]

    @cached_property
    def whole_numbers(self) -> bool:
        """Whether all targets are whole numbers."""
        return bool(np.all(self.y == np.round(self.y)))

    def split(self, index: int, *, smoke: bool = False) -> "Split":
        train, test = (self.arrays[f"{part}_idx"][index] for part in ("train", "test"))
        most = _SMOKE_ROWS if smoke else None
        # Splits of different lengths end with negative numbers.
        return Split(self, train[train >= 0][:most], test[test >= 0])


@dataclass(frozen=True)
class Split:
    """Training and test rows of a table."""

    table: Table
    train: np.ndarray
    test: np.ndarray

    @property
    def x_train(self) -> np.ndarray:
        return self.table.x[self.train]

    @property
    def y_train(self) -> np.ndarray:
        return self.table.y[self.train]

    @property
    def x_test(self) -> np.ndarray:
        return self.table.x[self.test]

    @property
    def y_test(self) -> np.ndarray:
        return self.table.y[self.test]


def find_tables(directory: Path, names: Sequence[str] | None = None) -> list[Table]:
    """Returns the sets of a directory."""
    layout = (
        f"it must hold uci/SET.npz or SET.npz with the arrays {', '.join(KEYS)}; name "
        "the directory with --data"
    )
    found = {}
    for path in [*directory.glob("*.npz"), *directory.glob("uci/*.npz")]:
        with np.load(path, allow_pickle=False) as archive:
            if set(KEYS) <= set(archive.files):
                found[path.stem] = Table(path.stem, path)
    if not found:
        raise DataError(
            f"The data directory has no table with splits: {layout}. "
            f"Received: {directory}"
        )
    for name in names or ():
        if name not in found:
            raise DataError(
                f"The data directory has no set {name!r}; it has "
                f"{', '.join(sorted(found))}. Received: {directory}"
            )
    return [found[name] for name in names or sorted(found, key=str.lower)]
