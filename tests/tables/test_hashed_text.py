import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfbbb.tables import Schema
from tfbbb.tables.row_layout import RowLayout
from tfbbb.tables.text_features import HashedText, text_bucket


def test_equal_texts_share_a_bucket_and_missing_text_has_its_own():
    layer = HashedText([16, 3])
    texts = tf.constant(["a", "b", "", "a"])
    features = np.asarray(layer([texts, texts]))
    assert features.shape == (4, 17 + 4)
    np.testing.assert_array_equal(features.sum(axis=1), [2, 2, 2, 2])
    np.testing.assert_array_equal(features[0], features[3])
    assert features[2, 16] == features[2, -1] == 1
    restored = HashedText.from_config(layer.get_config())
    np.testing.assert_array_equal(restored([texts, texts]), features)


def test_buckets_are_the_same_on_every_machine():
    buckets = text_bucket(tf.constant(["mill lane", "grün", ""]), 256)
    # As the first version computed them.
    assert buckets.numpy().tolist() == [76, 17, 256]


def test_training_rows_keep_dates_and_buckets():
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
    when, street = schema.features
    assert (when.kind, street.buckets, when.missing) == ("date", 256, True)
    layout = RowLayout(schema)
    rows = layout.encode(table)
    assert rows.dtype == np.float32
    assert rows.shape == (3000, 4)
    decoded, _ = layout.decode(rows)
    given = schema.inputs(table)
    np.testing.assert_array_equal(decoded["when"], given["when"])
    np.testing.assert_array_equal(
        text_bucket(decoded["street"], 256), text_bucket(given["street"], 256)
    )
