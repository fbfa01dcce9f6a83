"""Figures over consecutive rows, whatever the requests that bring them."""

import numpy as np
import pytest

from service.api.feedback.over_time import extend
from service.shared.json_types import JsonObject

RANDOM = np.random.default_rng(0)


def history_of(values: np.ndarray, sizes: list[int]) -> JsonObject:
    """Adds rows in requests of the given sizes."""
    history, start = None, 0
    for at, size in enumerate(sizes):
        part = values[start : start + size]
        scores = {"coverage_90": part, "squared_error": part**2, "crps": part}
        history = extend(
            history, scores, first_row=start + 1, num_rows=size, now=float(at)
        )
        start += size
    assert history is not None
    assert start == len(values)
    return history


@pytest.mark.parametrize("num_rows", [95, 5003])
def test_blocks_hold_all_rows_in_order_and_stay_few(num_rows: int) -> None:
    values = RANDOM.normal(size=num_rows)
    blocks = history_of(values, [num_rows])["blocks"]
    assert len(blocks) <= 60
    start = 0
    for block in blocks:
        assert block["first_row"] == start + 1
        part = values[start : start + block["num_rows"]]
        assert block["sums"]["coverage_90"] == pytest.approx(part.sum(), abs=1e-9)
        assert block["sums"].keys() == {"coverage_90", "squared_error"}
        start += block["num_rows"]
    assert start == num_rows
    assert len({block["num_rows"] for block in blocks[:-1]}) <= 1


def test_blocks_do_not_depend_on_the_requests() -> None:
    values = RANDOM.normal(size=1234)
    whole = history_of(values, [1234])
    parts = history_of(values, [1, 7, 300, 426, 500])
    assert whole["size"] == parts["size"]
    for one, other in zip(whole["blocks"], parts["blocks"], strict=True):
        assert one["first_row"] == other["first_row"]
        assert one["num_rows"] == other["num_rows"]
        assert one["sums"] == pytest.approx(other["sums"])
