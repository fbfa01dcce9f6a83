import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Schema
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.tables.row_layout import RowLayout

ROWS = 57
BATCH_SIZE = 8
BATCHES = 8


TABLE = pa.table(
    {
        "x": range(ROWS),
        "word": ["a", "b", ""] * (ROWS // 3),
        "y": [2.0 * x for x in range(ROWS)],
    }
)
LAYOUT = RowLayout(Schema.infer(TABLE, "y", features=["x", "word"]))


@pytest.fixture(scope="module")
def rows():
    return MemoryRows(LAYOUT, LAYOUT.encode(TABLE))


def targets(rows, count, **options):
    batches = rows.batches(BATCH_SIZE, **options).take(count)
    return [batch[1].numpy().reshape(-1).tolist() for batch in batches]


def test_each_epoch_has_every_row_once_in_another_order(rows):
    batches = targets(rows, 3 * BATCHES, seed=0)
    assert [len(batch) for batch in batches] == [*[BATCH_SIZE] * 7, 1] * 3
    orders = np.concatenate(batches).reshape(3, ROWS)
    assert (np.sort(orders) == 2 * np.arange(ROWS)).all()
    assert len(set(map(tuple, orders.tolist()))) == 3


def test_the_order_depends_only_on_seed_and_epoch(rows):
    first, again, other = (targets(rows, BATCHES, seed=seed) for seed in (3, 3, 4))
    assert first == again != other


def test_a_stream_may_start_at_any_batch_of_any_epoch(rows):
    whole = targets(rows, 4 * BATCHES, seed=1)
    # An epoch's number only seeds its order: of the first epoch one batch will do.
    for epoch, batch in [(0, 3), (1, 0), (1, 4), (1, BATCHES - 1)]:
        place = epoch * BATCHES + batch
        started = targets(rows, 10, seed=1, epoch=epoch, batch=batch)
        assert started == whole[place : place + 10]


def test_shuffling_keeps_inputs_and_targets_together(rows):
    for inputs, targets in rows.batches(BATCH_SIZE, seed=0).take(BATCHES):
        np.testing.assert_array_equal(2 * inputs["x"], targets[:, 0])
        words = [word.decode() for word in inputs["word"].numpy()]
        assert words == [["a", "b", ""][int(x) % 3] for x in inputs["x"]]


def test_targets_returns_the_targets_of_all_rows(rows):
    assert rows.targets().dtype == np.float32
    np.testing.assert_array_equal(rows.targets()[:, 0], 2 * np.arange(ROWS))


def test_the_digest_is_of_the_rows_in_their_order(rows):
    numbers = LAYOUT.encode(TABLE)
    assert rows.sha256 == MemoryRows(LAYOUT, numbers).sha256
    assert rows.sha256 != MemoryRows(LAYOUT, numbers[::-1]).sha256
