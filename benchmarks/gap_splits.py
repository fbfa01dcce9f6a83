"""Splits of tables that leave out the rows in the middle of a feature."""

import hashlib
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
    """Makes gaps in the tables `DIR/uci/SET.npz`; a tenth of the rows is held out.

    Raises:
        DataError: The directory has no table.
    """
    paths = sorted((data / "uci").glob("*.npz"))
    if not paths:
        raise DataError(
            "The data directory must have tables `uci/SET.npz`, with `data`, "
            f"`index_features` and `index_target`. Received: --data {data}"
        )
    return {path.stem: _splits(path) for path in paths}


def _splits(path: Path) -> list[GapSplit]:
    with np.load(path) as archive:
        rows, target = archive["data"], int(archive["index_target"])
        features = archive["index_features"].astype(int).tolist()
    pairs = [pair for f in features if (pair := _gap_rows(rows[:, f]))]
    splits = []
    for number, (kept, gap) in enumerate(pairs):
        order = np.random.default_rng(number).permutation(kept)
        held_out = len(order) // 10
        splits.append(
            GapSplit(rows, features, target, order[held_out:], order[:held_out], gap)
        )
    return splits


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
