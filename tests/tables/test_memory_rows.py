import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Schema
from tfbbb.tables.memory_rows import MemoryRows

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
SCHEMA = Schema.infer(TABLE, "y", features=["x", "word"])


@pytest.fixture(scope="module")
def rows():
    return MemoryRows.read(SCHEMA, [TABLE[:20], TABLE[20:]], ROWS)


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


def test_the_digest_is_of_the_rows_in_their_order(rows):
    assert rows.sha256 == rows.take(np.arange(ROWS)).sha256
    assert rows.sha256 != rows.take(np.arange(ROWS)[::-1]).sha256


def test_dates_and_texts_in_buckets_are_those_of_the_table():
    generator = np.random.default_rng(0)
    seconds = generator.integers(-(10**9), 4 * 10**9, 3000).tolist()
    texts = [f"s{i}" for i in generator.integers(0, 2000, 3000)]
    table = pa.table(
        {
            "when": pa.array([None, *seconds[1:]], pa.timestamp("s")),
            "street": ["", *texts[1:]],
            "y": generator.normal(size=3000),
        }
    )
    schema = Schema.infer(table, "y")
    assert [column.buckets for column in schema.features] == [0, 256]
    inputs, _ = MemoryRows.read(schema, [table], 3000).at(np.arange(3000))
    for name, given in schema.inputs(table).items():
        np.testing.assert_array_equal(inputs[name], given)


def test_a_matrix_is_double_if_a_column_must_be():
    table = pa.table(
        {"t": np.arange(12) + 1e9, "x": np.arange(12) ** 2, "y": range(12)}
    )
    schema = Schema.infer(table, "y", features=["t", "x"])
    inputs, _ = MemoryRows.read(schema, [table], 12).at(np.arange(12))
    assert inputs.dtype == np.float64
    np.testing.assert_array_equal(inputs, schema.inputs(table))
