import warnings

import keras
import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfbbb.tables import Schema, preprocessing
from tfbbb.tables.number_features import Standardize

ROWS = 40


def table_of(names=None):
    """Numbers, numbers with gaps, texts with gaps, and a constant."""
    generator = np.random.default_rng(0)
    columns = {
        "number": 50 + 9 * generator.normal(size=ROWS),
        "gaps": [None if i % 5 == 0 else float(i) for i in range(ROWS)],
        "text": [("red", "grün", None, "blue")[i % 4] for i in range(ROWS)],
        "constant": [5e6] * ROWS,
        "word": [("up", "down")[i % 2] for i in range(ROWS)],
        "y": generator.normal(size=ROWS),
    }
    return pa.table(columns).select([*(names or list(columns)[:-1]), "y"])


def model_of(schema):
    inputs, features = preprocessing(schema)
    return keras.Model(inputs, keras.layers.Dense(1, name="output")(features))


def features_of(schema, table):
    return keras.Model(*preprocessing(schema))(schema.inputs(table)).numpy()


def test_features_are_numbers_then_missing_indicators_then_categories():
    table = table_of()
    schema = Schema.infer(table, "y", features=table.column_names[:-1])
    number = table["number"].to_numpy()
    gaps = table["gaps"].to_numpy()
    known = ~np.isnan(gaps)
    texts = table["text"].fill_null("").to_numpy()
    words = table["word"].to_numpy()
    expected = np.column_stack(
        [
            (number - number.mean()) / number.std(),
            np.where(known, (gaps - gaps[known].mean()) / gaps[known].std(), 0),
            np.zeros(ROWS),
            ~known,
            *(texts == category for category in ("", "blue", "grün", "red")),
            np.zeros(ROWS),
            *(words == category for category in ("down", "up")),
            np.zeros(ROWS),
        ]
    )
    np.testing.assert_allclose(features_of(schema, table), expected, atol=1e-5)


def test_unseen_texts_share_one_indicator_and_missing_ones_are_the_mean():
    table = table_of(["text"])
    known = [i for i, text in enumerate(table["text"].to_pylist()) if text]
    schema = Schema.infer(table, "y", training_rows=known)
    asked = pa.table({"text": ["red", "mauve", "", None]})
    mean = [1 / 3, 1 / 3, 1 / 3, 0]
    np.testing.assert_allclose(
        features_of(schema, asked), [[0, 0, 1, 0], [0, 0, 0, 1], mean, mean], rtol=1e-6
    )


def test_features_do_not_depend_on_the_unit():
    numbers = np.random.default_rng(0).normal(size=ROWS)
    y = np.arange(ROWS)
    plain = pa.table({"x": numbers, "y": y})
    scaled = pa.table({"x": 1e-12 * numbers, "y": y})
    np.testing.assert_allclose(
        features_of(Schema.infer(scaled, "y"), scaled),
        features_of(Schema.infer(plain, "y"), plain),
        rtol=1e-5,
        atol=1e-6,
    )


def test_the_gradient_is_finite_where_values_are_missing():
    layer = Standardize([{"mean": 0.0, "scale": 1.0, "missing": True, "constant": 0}])
    x = tf.constant([[np.nan], [2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [[0.0], [1.0]])


def test_columns_may_have_any_name(tmp_path):
    numbers = [None, *np.random.default_rng(0).normal(size=ROWS - 1)]
    names = ["a b/c", "a_b_c", "1ü", "dense", "input", "standardize", "output", "a.b:0"]
    table = pa.table({**dict.fromkeys(names, numbers), "y": range(ROWS)})
    schema = Schema.infer(table, "y", features=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = model_of(schema)
        model.compile("adam", "mse")
        model.fit(schema.inputs(table), schema.targets(table), verbose=0)
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        assert set(loaded.input) == set(names)
        loaded(schema.inputs(table))


def test_raw_units_are_standardised_in_single_precision_under_mixed_precision():
    layer = Standardize(
        [{"mean": 1e6, "scale": 1.0, "missing": False, "constant": False}],
        dtype="mixed_float16",
    )
    answer = layer(np.array([[1e6 + 1]], dtype=np.float32))
    assert answer.dtype == "float16"
    np.testing.assert_array_equal(answer, [[1.0]])


def test_many_columns_get_fewer_intervals_each():
    numbers = np.random.default_rng(0).normal(size=(300, 100))
    table = {f"x{index}": column for index, column in enumerate(numbers.T)}
    schema = Schema.infer(table | {"y": numbers[:, 0]}, "y", features=list(table))
    _, features = preprocessing(schema, piecewise_linear=True)
    # 100 columns of 12 intervals would be more than 1000: every second edge is left.
    assert features.shape == (None, 100 + 100 * 6)
