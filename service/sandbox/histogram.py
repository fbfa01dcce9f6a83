"""The histogram of numbers that come in batches, in one pass and bounded memory."""

import numpy as np

_CELLS = 4096
_BINS = 20


class Histogram:
    """Counts numbers in cells of equal width, whose range doubles when it is too small.

    When the range doubles, cells are joined in pairs, so that every count stays exact.
    """

    def __init__(self, values: np.ndarray) -> None:
        self._least, self._greatest = float(values.min()), float(values.max())
        self._start = self._least
        # Equal numbers have no range yet.
        least_width = float(np.spacing(max(abs(self._least), abs(self._greatest))))
        self._width = max((self._greatest - self._least) / _CELLS, least_width)
        self._counts = np.bincount(self._cells(values), minlength=_CELLS)

    def add(self, values: np.ndarray) -> None:
        """Adds finite numbers."""
        least, greatest = float(values.min()), float(values.max())
        self._least = min(self._least, least)
        self._greatest = max(self._greatest, greatest)
        while greatest > self._start + _CELLS * self._width:
            self._double(downwards=False)
        while least < self._start:
            self._double(downwards=True)
        self._counts += np.bincount(self._cells(values), minlength=_CELLS)

    def bins(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the edges of about 20 bins of equal width, and their counts."""
        first, last = self._cells(np.array([self._least, self._greatest]))
        size = -(-(last + 1 - first) // _BINS)
        starts = np.arange(first, last + 1, size)
        counts = np.add.reduceat(self._counts[: last + 1], starts)
        edges = self._start + self._width * np.append(starts, last + 1)
        edges[0], edges[-1] = self._least, self._greatest
        return edges, counts

    def _cells(self, values: np.ndarray) -> np.ndarray:
        cells = np.floor((values - self._start) / self._width).astype(np.int64)
        # The greatest number, and those that rounding puts beyond their cell.
        return np.clip(cells, 0, _CELLS - 1)

    def _double(self, *, downwards: bool) -> None:
        pairs = self._counts.reshape(-1, 2).sum(axis=1)
        empty = np.zeros_like(pairs)
        if downwards:
            self._start -= _CELLS * self._width
            pairs, empty = empty, pairs
        self._counts = np.concatenate([pairs, empty])
        self._width *= 2.0


def histogram_of(values: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns edges and counts of at most 20 bins of all distinct numbers."""
    least, greatest = float(values.min()), float(values.max())
    if np.all(values == np.round(values)) and greatest - least < _BINS:
        # One bin around each whole number.
        edges = np.arange(least, greatest + 2) - 0.5
        return edges, np.histogram(values, edges, weights=counts)[0].astype(np.int64)
    found, edges = np.histogram(values, _BINS, (least, greatest), weights=counts)
    return edges, found.astype(np.int64)
