"""Figures of feedback over time: sums over consecutive rows, in a bounded number."""

from collections.abc import Mapping

import numpy as np

from service.shared.json_types import JsonObject

FIGURES = (
    *("log_likelihood", "coverage_50", "coverage_90", "coverage_95"),
    *("squared_error", "mean_absolute_error", "accuracy"),
)
# A block has ten rows at first; of more than 60 blocks, each two become one.
_FIRST_SIZE = 10
_MOST_BLOCKS = 60


def extend(
    history: JsonObject | None,
    scores: Mapping[str, np.ndarray],
    *,
    first_row: int,
    num_rows: int,
    now: float,
) -> JsonObject:
    """Returns the history after more rows."""
    history = history or {"size": _FIRST_SIZE, "blocks": []}
    size, blocks = history["size"], [dict(block) for block in history["blocks"]]
    kept = {name: scores[name] for name in FIGURES if name in scores}
    start = 0
    while start < num_rows:
        room = size - blocks[-1]["num_rows"] if blocks else 0
        stop = min(num_rows, start + (room if room > 0 else size))
        block = {
            "first_row": first_row + start,
            "num_rows": stop - start,
            "at": now,
            "sums": {
                name: float(np.sum(values[start:stop])) for name, values in kept.items()
            },
        }
        blocks[-1:] = [_merge(blocks[-1], block)] if room > 0 else [*blocks[-1:], block]
        start = stop
    while len(blocks) > _MOST_BLOCKS:
        size *= 2
        pairs = zip(blocks[::2], [*blocks[1::2], None], strict=False)
        blocks = [a if b is None else _merge(a, b) for a, b in pairs]
    return {"size": size, "blocks": blocks}


def _merge(first: JsonObject, second: JsonObject) -> JsonObject:
    names = first["sums"].keys() & second["sums"].keys()
    return {
        "first_row": first["first_row"],
        "num_rows": first["num_rows"] + second["num_rows"],
        "at": second["at"],
        "sums": {name: first["sums"][name] + second["sums"][name] for name in names},
    }
