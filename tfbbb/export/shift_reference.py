"""Rows with which a model was calibrated, by which intervals adapt to other rows."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from tfbbb.base.row_weights import effective_rows, resampled, weighted_scores
from tfbbb.base.texts import listed
from tfbbb.export.inputs import Inputs, to_tensors
from tfbbb.export.manifest import Manifest
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.row_encoding import RowEncoding, row_values
from tfbbb.prediction.shift_weights import shift_weights

# In `assets.extra` of a SavedModel.
SHIFT_FILE = "shift_reference.npz"
# The size of the encoded rows, in float32.
_MOST_ROWS, _MOST_NUMBERS = 2000, 250_000
_LEAST_ROWS = 40
# The share of rows that are most rows.
_MOSTLY = 0.8
_LOWEST, _HIGHEST = 1e-6, 1.0 - 1e-7


@dataclass(frozen=True)
class AdaptedLevels:
    """What intervals to ask for, so that they cover rows of another distribution.

    Attributes:
        levels: The levels to ask for, in the order of those that are wanted.
        num_rows: Number of rows that the model was calibrated with, and are compared.
        effective_rows: How many of them count for the new rows; as many if the new rows
            are like them.
    """

    levels: tuple[float, ...]
    num_rows: int
    effective_rows: int


@dataclass(frozen=True)
class ShiftReference:
    """Rows that calibrated a model, and the levels that cover them.

    Attributes:
        columns: The names of the compared columns.
        encoding: How rows are compared.
        rows: The encoded rows, float32 [n, p].
        levels: The smallest level whose interval or set has the target of each row,
            float64 [n].
    """

    columns: tuple[str, ...]
    encoding: RowEncoding
    rows: np.ndarray
    levels: np.ndarray

    @classmethod
    def fit(
        cls,
        inputs: Mapping[str, np.ndarray],
        levels: np.ndarray,
        seed: int = 0,
        weights: np.ndarray | None = None,
    ) -> Self | None:
        """Keeps at most 2000 rows, drawn at random; None for fewer than 40 rows.

        Args:
            inputs: The compared columns by name, [n] each.
            levels: The smallest level whose interval or set has the target, [n].
            seed: Seed of the choice of the rows.
            weights: The weight of each row, by which it is drawn, [n]; None for 1.
        """
        weights = np.ones(len(levels)) if weights is None else weights
        order = resampled(weights, seed)
        if len(order) < _LEAST_ROWS or not inputs:
            return None
        values, is_text = row_values(list(inputs.values()), None)
        encoding = RowEncoding.fit(values, is_text)
        most = min(_MOST_ROWS, _MOST_NUMBERS // len(encoding.is_code))
        if most < _LEAST_ROWS:
            return None
        kept = np.sort(order[:most])
        rows = encoding.encode(values[kept])
        return cls(tuple(inputs), encoding, rows, np.asarray(levels)[kept])

    def adapt(
        self, inputs: Inputs, manifest: Manifest, wanted: Sequence[float]
    ) -> AdaptedLevels:
        """Returns the levels whose intervals cover other rows as wanted.

        The kept rows get weights (`shift_weights`). A level becomes the conformal
        quantile of the weighted `levels`: of rows like the new ones, a share of at
        least the wanted level has its target in the interval of that level. If the new
        rows are like the kept ones, the levels stay as they are.
        """
        columns = self._columns(inputs, manifest)
        try:
            weights = shift_weights(
                self.rows, self.encoding(columns), self.encoding.is_code
            )
        except ValueError as error:
            unread = self._unread(columns)
            if not unread:
                raise
            column = "column" if len(unread) == 1 else "columns"
            raise ValueError(
                f"Most rows lack a value that can be read in {column} "
                f"{listed(list(map(repr, unread)))}, which nearly all rows of the "
                f"calibration have: correct it, or leave out adapting. {error}"
            ) from None
        if np.all(weights == 1.0):
            return AdaptedLevels(tuple(wanted), len(self.rows), len(self.rows))
        number = effective_rows(weights)
        scores = weighted_scores(self.levels[:, np.newaxis], weights).T.tolist()
        found = conformal_reach(scores, list(wanted))[:, 0]
        if not np.isfinite(found).all():
            raise ValueError(
                "The rows of the calibration count for too few rows like the new ones "
                f"for this level; ask for a lower one. Received: {number} rows, "
                f"level={max(wanted):g}"
            )
        levels = np.clip(found, _LOWEST, _HIGHEST).tolist()
        return AdaptedLevels(tuple(levels), len(self.rows), number)

    def to_bytes(self) -> bytes:
        """Returns the reference as an archive of NumPy arrays."""
        archive, encoding = io.BytesIO(), self.encoding
        np.savez_compressed(
            archive,
            allow_pickle=False,
            columns=np.array(self.columns, np.str_),
            rows=self.rows,
            levels=self.levels,
            is_text=encoding.is_text,
            scaling=np.stack([encoding.centers, encoding.units, encoding.scales]),
            incomplete=encoding.incomplete,
        )
        return archive.getvalue()

    @classmethod
    def read(cls, version: Path) -> Self | None:
        """Reads the reference of an exported model; None if it has none."""
        path = Path(version) / "assets.extra" / SHIFT_FILE
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as given:
            columns = tuple(given["columns"].tolist())
            parts = given["is_text"], *given["scaling"], given["incomplete"]
            encoding = RowEncoding(None, *parts)
            return cls(columns, encoding, given["rows"], given["levels"])

    def _unread(self, columns: Sequence[np.ndarray]) -> list[str]:
        """Returns the columns that most new rows and few kept rows lack a value in."""
        values, _ = row_values(list(columns), None)
        missing = np.mean(~np.isfinite(values), axis=0)
        kept, first = np.zeros(len(self.columns)), len(self.columns)
        # Flags of the columns that some kept rows lack a value in.
        places = list(self.encoding.incomplete)
        kept[places] = self.rows[:, first : first + len(places)].mean(axis=0)
        return [
            name
            for name, share, usual in zip(self.columns, missing, kept, strict=True)
            if share > _MOSTLY > 1 - _MOSTLY > usual
        ]

    def _columns(self, inputs: Inputs, manifest: Manifest) -> list[np.ndarray]:
        tensors = to_tensors(inputs, manifest)
        features = [feature.name for feature in manifest.features]
        if manifest.inputs == "matrix":
            places = [features.index(name) for name in self.columns]
            return [tensors["inputs"][:, place] for place in places]
        names = {feature.name: feature.tensor for feature in manifest.features}
        return [tensors[names[name]] for name in self.columns]
