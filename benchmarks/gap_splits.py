"""Splits of tables that leave out the rows in the middle of a feature."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from program import DataError


@dataclass(frozen=True)
class GapSplit:
    """Rows of a table inside and outside a gap.

    Attributes:
        data: The table, [rows, columns].
        features: Columns of the features.
        target: Column of the target.
        train: Rows for training, outside the gap.
        outside: Rows outside the gap that no training sees.
        gap: Rows in the gap.
    """

    data: np.ndarray
    features: list[int]
    target: int
    train: np.ndarray
    outside: np.ndarray
    gap: np.ndarray

    @property
    def digest(self) -> str:
        """A digest of the table and of the rows."""
        arrays = self.data, self.train, self.outside, self.gap
        parts = [np.ascontiguousarray(array).tobytes() for array in arrays]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def gap_splits(data: Path) -> dict[str, list[GapSplit]]:
    """Reads `DIR/gap/SET.npz`, or else makes gaps in the tables of `DIR/uci`.

    A file has `data`, `index_features` and `index_target` (or the table `uci/SET.npz`
    has them), and the rows `train_i` and `test_i` as the rows of two matrices, or as
    `train_0`, `test_0`, `train_1`, ... A tenth of the rows of `train_i` is held out.

    Raises:
        DataError: The directory has neither.
    """
    given = sorted((data / "gap").glob("*.npz"))
    paths = given or sorted((data / "uci").glob("*.npz"))
    if not paths:
        raise DataError(
            "The data directory must have tables `gap/SET.npz` or `uci/SET.npz`, with "
            "`data`, `index_features` and `index_target`. "
            f"Received: --data {data}"
        )
    return {path.stem: _splits(path, data) for path in paths}


def _splits(path: Path, data: Path) -> list[GapSplit]:
    with np.load(path) as archive:
        arrays = dict(archive)
    if "data" not in arrays:
        table = data / "uci" / path.name
        if not table.is_file():
            raise DataError(
                f"`{path.name}` has no `data`, and there is no `uci/{path.name}` with "
                f"the table. Received: --data {data}"
            )
        with np.load(table) as archive:
            arrays = dict(archive) | arrays
    rows, target = arrays["data"], int(arrays["index_target"])
    features = arrays["index_features"].astype(int).tolist()
    if path.parent.name == "gap":
        pairs = list(_given_rows(arrays, path))
    else:
        pairs = [pair for f in features if (pair := _gap_rows(rows[:, f]))]
    splits = []
    for number, (kept, gap) in enumerate(pairs):
        order = np.random.default_rng(number).permutation(kept)
        held_out = len(order) // 10
        splits.append(
            GapSplit(rows, features, target, order[held_out:], order[:held_out], gap)
        )
    return splits


def _given_rows(
    arrays: dict[str, np.ndarray], path: Path
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if "train_i" in arrays:
        yield from zip(
            np.atleast_2d(arrays["train_i"]),
            np.atleast_2d(arrays["test_i"]),
            strict=True,
        )
        return
    number = 0
    while f"train_{number}" in arrays:
        yield arrays[f"train_{number}"], arrays[f"test_{number}"]
        number += 1
    if not number:
        raise DataError(
            "A gap split needs the rows `train_0` and `test_0`, or `train_i` and "
            f"`test_i`. Received: {path} with {', '.join(sorted(arrays))}"
        )


def _gap_rows(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns the rows outside and inside the middle third of a feature.

    Rows of the same value stay together (Foong et al. 2019 sort the rows). None if the
    feature has so few values that less than a sixth of the rows is inside, below or
    above.
    """
    low, high = np.quantile(values, [1 / 3, 2 / 3])
    inside = (values > low) & (values <= high)
    parts = inside.sum(), (values <= low).sum(), (values > high).sum()
    if min(parts) < len(values) / 6:
        return None
    return np.flatnonzero(~inside), np.flatnonzero(inside)
