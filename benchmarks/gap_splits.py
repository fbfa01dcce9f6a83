"""Splits of tables that leave out the rows in a third of a feature."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from program import DataError

# Where the rows are that a split takes out of the training rows.
MIDDLE, END = "middle", "end"


@dataclass(frozen=True)
class GapSplit:
    """Rows of a table inside and outside a gap, or an end, of a feature.

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


def gap_splits(data: Path, place: str) -> dict[str, list[GapSplit]]:
    """Makes gaps in the tables `DIR/uci/SET.npz`; a tenth of the rows is held out."""
    paths = sorted((data / "uci").glob("*.npz"))
    if not paths:
        raise DataError(
            "The data directory must have tables `uci/SET.npz`, with `data`, "
            f"`index_features` and `index_target`. Received: --data {data}"
        )
    return {path.stem: _splits(path, place) for path in paths}


def _splits(path: Path, place: str) -> list[GapSplit]:
    with np.load(path) as archive:
        rows, target = archive["data"], int(archive["index_target"])
        features = archive["index_features"].astype(int).tolist()
    splits: list[GapSplit] = []
    for feature in features:
        number = len(splits)
        if place == MIDDLE:
            inside = _middle_rows(rows[:, feature])
        else:
            inside = _end_rows(rows[:, feature], prefer_upper=number % 2 == 0)
        if inside is None:
            continue
        kept, gap = np.flatnonzero(~inside), np.flatnonzero(inside)
        order = np.random.default_rng(number).permutation(kept)
        held_out = len(order) // 10
        splits.append(
            GapSplit(rows, features, target, order[held_out:], order[:held_out], gap)
        )
    return splits


def _middle_rows(values: np.ndarray) -> np.ndarray | None:
    """Returns which rows are in the middle third of a feature.

    Rows of the same value stay together (Foong et al. 2019 sort the rows). None if the
    feature has so few values that less than a sixth of the rows is inside, below or
    above.
    """
    low, high = np.quantile(values, [1 / 3, 2 / 3])
    inside = (values > low) & (values <= high)
    parts = inside.sum(), (values <= low).sum(), (values > high).sum()
    if min(parts) < len(values) / 6:
        return None
    return inside


def _end_rows(values: np.ndarray, prefer_upper: bool) -> np.ndarray | None:
    """Returns which rows are in the upper or lower third of a feature.

    None if the feature has so few values that less than a sixth or more than half of
    the rows is above the upper and below the lower third.
    """
    low, high = np.quantile(values, [1 / 3, 2 / 3])
    ends = [values > high, values < low]
    for inside in ends if prefer_upper else reversed(ends):
        if len(values) / 6 <= inside.sum() <= len(values) / 2:
            return inside
    return None
