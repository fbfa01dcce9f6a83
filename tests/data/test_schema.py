import json

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.data import Schema, TableError, samples


def table_of(**columns):
    """A table of 12 rows with the features `x` and `kind` and the target `y`."""
    return pa.table(
        {
            "x": np.arange(12.0),
            "kind": ["a", "b", "c"] * 4,
            "y": 2.0 * np.arange(12),
            **columns,
        }
    )


def replaced(values, row, value):
    """The values with another one in a row, counted from 1."""
    return [*values[: row - 1], value, *values[row:]]


def test_the_diabetes_table_is_a_regression_from_a_matrix():
    table = samples.diabetes()
    schema = Schema.infer(table, "progression")
    assert (schema.task, schema.input_format) == ("regression", "matrix")
    assert schema.inputs(table).shape == (442, 10)
    assert schema.inputs(table).dtype == np.float32
    assert schema.targets(table).shape == (442, 1)
    np.testing.assert_array_equal(
        schema.targets(table)[:, 0], table["progression"].to_numpy()
    )


@pytest.mark.parametrize(
    ("target", "task", "classes"),
    [
        (np.arange(12.0), "regression", ()),
        (np.arange(12), "regression", ()),
        (["no", "yes", "no"] * 4, "classification", ("no", "yes")),
        ([True, False, True] * 4, "classification", ("false", "true")),
    ],
)
def test_the_task_follows_from_the_target(target, task, classes):
    schema = Schema.infer(table_of(y=target), "y")
    assert (schema.task, schema.classes) == (task, classes)


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64()])
def test_whole_numbers_are_classes_in_the_order_of_their_values(type_):
    table = table_of(y=pa.array([10, 2, -1, 0] * 3, type_))
    schema = Schema.infer(table, "y", task="classification")
    assert schema.classes == ("-1", "0", "2", "10")
    assert schema.targets(table)[:4].tolist() == [3, 2, 0, 1]
    assert schema.targets(table).dtype == np.int32


def test_the_two_zeros_of_floating_point_numbers_are_one_class():
    schema = Schema.infer(table_of(y=[0.0, -0.0, 1.0] * 4), "y", task="classification")
    assert schema.classes == ("0", "1")


def test_inputs_are_a_dictionary_with_text_or_missing_values():
    table = table_of(x=replaced(list(range(12)), 2, None))
    schema = Schema.infer(table, "y")
    assert schema.input_format == "columns"
    inputs = schema.inputs(table)
    assert list(inputs) == ["x", "kind"]
    assert inputs["x"].dtype == np.float32
    assert np.isnan(inputs["x"][1])
    assert inputs["kind"][:2].tolist() == ["a", "b"]


def test_only_statistics_and_categories_come_from_training_rows():
    table = table_of(kind=["a"] * 11 + ["z"])
    schema = Schema.infer(table, "y", training_rows=np.arange(11))
    x, kind = schema.features
    assert x.mean == 5.0
    assert kind.categories == ("a",)
    assert schema.target.mean == 10.0


def test_requested_features_keep_their_order():
    schema = Schema.infer(table_of(w=np.ones(12)), "y", features=["w", "x"])
    assert [column.name for column in schema.features] == ["w", "x"]


def test_other_columns_are_ignored():
    schema = Schema.infer(table_of(), "y", features=["x"])
    more = table_of(day=pa.array(range(12), pa.date32()))
    np.testing.assert_array_equal(schema.inputs(more)[:, 0], np.arange(12))


def test_a_schema_is_restored_from_json():
    for target in (np.arange(12.0), ["no", "yes"] * 6):
        schema = Schema.infer(table_of(y=target), "y")
        assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


Y = list(np.arange(12.0))


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ({}, {"target": "z"}, r"no target column 'z'.*'x', 'kind', 'y'"),
        ({}, {"target": "kin"}, "did you mean 'kind'"),
        ({}, {"features": ["X"]}, r"no feature column 'X'"),
        ({}, {"features": ["x", "x"]}, "'x' appears 2 times"),
        ({}, {"features": ["x", "y"]}, "target 'y' cannot be a feature"),
        ({}, {"features": []}, "no column other than the target 'y'"),
        ({"y": replaced(Y, 4, None)}, {}, "'y' has no value in row 4"),
        ({"y": replaced(Y, 4, np.nan)}, {}, "'y' has no value in row 4"),
        ({"y": replaced(Y, 4, np.inf)}, {}, "'y' has the value inf in row 4"),
        ({"y": ["a", "b", None] * 4}, {}, "'y' has no value in row 3"),
        ({"y": [3.5] * 12}, {}, "'y' has the same value, 3.5, in every"),
        ({"y": ["a"] * 12}, {}, "'y' has the same class, 'a', in every"),
        ({"y": [*[1.0] * 11, 2.0]}, {"training_rows": range(11)}, "the same value, 1"),
        ({"y": ["a", "b"] * 6}, {"task": "regression"}, "the text 'a' in row 1"),
        ({"y": [*"12345678901", "?"]}, {}, r"'y' is mostly numbers.*'\?' in row 12"),
        ({"y": replaced(Y, 4, 0.5)}, {"task": "classification"}, "value 0.5 in row 4"),
        ({"y": pa.array(range(12), pa.date32())}, {}, "'y' holds values of type date"),
        ({"kind": pa.nulls(12)}, {}, "'kind' has no values; leave it out"),
        ({"x": replaced(Y, 12, -np.inf)}, {}, "'x' has the value -inf in row 12"),
    ],
)
def test_an_unusable_table_is_refused_with_the_place(columns, arguments, message):
    arguments = {"target": "y", **arguments}
    with pytest.raises(TableError, match=message):
        Schema.infer(table_of(**columns), **arguments)


def numbers_but(*texts):
    """A table of 40 rows with numbers as text in `x`, the last ones other texts."""
    numbers = [f" {i}.5" for i in range(40 - len(texts))]
    return pa.table({"x": [*numbers, *texts], "y": np.arange(40.0)})


def test_mostly_numeric_text_is_refused_with_the_first_text():
    message = r"'x' is mostly numbers, but has the text '\?' in row 37"
    with pytest.raises(TableError, match=message):
        Schema.infer(numbers_but("?", "?", "-", "?"), "y")
    with pytest.raises(TableError, match=r"'\?' in row 39"):
        Schema.infer(numbers_but("?", None), "y")


def test_text_columns_accept_mostly_numeric_text():
    (x,) = Schema.infer(numbers_but("?"), "y", text_columns=["x"]).features
    assert (x.kind, len(x.categories)) == ("categorical", 40)


@pytest.mark.parametrize(
    "texts",
    [
        # One text in eight is not a number; every text is one; only 20 distinct texts.
        ["?"] * 5 + [f"{i}" for i in range(35)],
        [f"00{i}" for i in range(40)],
        [f"{i % 19}" for i in range(39)] + ["10B"],
    ],
)
def test_text_with_few_numbers_or_few_categories_is_accepted(texts):
    (x,) = Schema.infer(pa.table({"x": texts, "y": np.arange(40.0)}), "y").features
    assert set(x.categories) == set(texts)


def test_fewer_than_ten_rows_are_refused():
    with pytest.raises(TableError, match="has 9 rows; at least 10"):
        Schema.infer(table_of().slice(0, 9), "y")
    with pytest.raises(TableError, match="has 1 row; at least 10"):
        Schema.infer(table_of().slice(0, 1), "y")


def test_too_many_categories_or_classes_are_refused():
    table = pa.table({"x": range(1001), "y": [f"t{i}" for i in range(1001)]})
    with pytest.raises(TableError, match="'y' has 1001 distinct texts"):
        Schema.infer(table, "x")
    with pytest.raises(TableError, match="'y' has 1001 classes"):
        Schema.infer(table, "y")


def test_errors_list_at_most_twenty_columns():
    table = pa.table({f"column {i}": range(10) for i in range(100)})
    with pytest.raises(TableError, match=r"'column 19' and 80 more\.$"):
        Schema.infer(table, "target")


def test_repeated_column_names_are_refused():
    table = pa.Table.from_arrays([pa.array(range(12))] * 2, names=["a", "a"])
    with pytest.raises(TableError, match="'a' appears 2 times"):
        Schema.infer(table, "a")


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="Received: task='ranking'"):
        Schema.infer(table_of(), "y", task="ranking")


def test_columns_missing_at_prediction_are_refused():
    schema = Schema.infer(table_of(), "y")
    with pytest.raises(TableError, match="no feature column 'x'"):
        schema.inputs(table_of().drop_columns("x"))
    with pytest.raises(TableError, match="no target column 'y'"):
        schema.targets(table_of().drop_columns("y"))


def test_an_unknown_class_is_refused_with_its_row():
    schema = Schema.infer(table_of(y=["a", "b"] * 6), "y")
    with pytest.raises(TableError, match=r"class 'c' in row 2;.*'a', 'b'"):
        schema.targets(table_of(y=["a", "c"] * 6))


def test_earlier_names_of_methods_still_work():
    assert Schema.inputs_of is Schema.inputs
    assert Schema.targets_of is Schema.targets
