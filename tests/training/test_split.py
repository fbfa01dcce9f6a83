import numpy as np
import pyarrow as pa
import pytest

from tfbbb.data import Schema, TableError
from tfbbb.training.preparation import prepare
from tfbbb.training.spec import JobSpec
from tfbbb.training.split import split_rows

ROWS = 60


def table(**columns):
    return pa.table({"x": range(ROWS), "y": [0.5 * x for x in range(ROWS)], **columns})


def split(columns, **validation):
    spec = JobSpec.model_validate(
        {"target": "y", "features": ["x"], "training": {"validation": validation}}
    )
    whole = table(**columns)
    return split_rows(whole, Schema.infer(whole, "y", features=["x"]), spec)


def test_a_tenth_is_held_out_by_default():
    rows = split({})
    assert (len(rows.training), len(rows.held_out)) == (54, 6)


def test_of_many_rows_ten_thousand_are_held_out():
    many = pa.table({"x": np.arange(2e5), "y": np.arange(2e5)})
    rows = split_rows(many, Schema.infer(many, "y"), JobSpec(target="y"))
    assert len(rows.held_out) == 10_000


@pytest.mark.parametrize("values", [[True, False, False], [1, 0, 0], [1.0, 0.0, 0.0]])
def test_a_column_says_which_rows_are_held_out(values):
    rows = split({"test": values * 20}, column="test")
    assert rows.held_out.tolist() == list(range(0, ROWS, 3))
    assert len(rows.training) == 40


def test_the_column_of_held_out_rows_is_no_feature():
    spec = JobSpec.model_validate(
        {"target": "y", "training": {"validation": {"column": "test"}}}
    )
    prepared = prepare(table(test=[True, False] * 30), spec)
    assert [column.name for column in prepared.schema.features] == ["x"]
    assert prepared.rows.num_rows == 30


def test_texts_that_are_views_are_split_as_others_are():
    words = pa.array(["a", "b"] * 30).cast(pa.string_view())
    spec = JobSpec(target="y", features=("x", "word"))
    prepared = prepare(table(word=words), spec)
    assert prepared.schema.features[1].categories == ("a", "b")
    assert set(prepared.held_out[0]["word"]) <= {"a", "b"}


def test_a_table_without_rows_to_hold_out_is_refused():
    of_one_row = pa.table({"x": [1.0], "y": [2.0]})
    schema = Schema.infer(table(), "y", features=["x"])
    for few, rows in ((of_one_row, "1 row"), (of_one_row.slice(0, 0), "0 rows")):
        with pytest.raises(TableError, match=f"has {rows}; at least 2 are needed"):
            split_rows(few, schema, JobSpec(target="y"))
    different = table(name=[f"n{row}" for row in range(ROWS)])
    schema = Schema.infer(different, "name", task="classification")
    with pytest.raises(TableError, match="'name' has 60 classes of one row each"):
        split_rows(different, schema, JobSpec(target="name"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["yes", "no"], "must be true or 1"),
        ([1, 2], "is 2 in row 2"),
        ([1.0, float("nan")], "is nan in row 2"),
        ([0, 0], "has the same value in all rows"),
        ([True, True], "has the same value in all rows"),
    ],
)
def test_a_column_that_does_not_say_it_is_refused(values, sentence):
    with pytest.raises(TableError, match=sentence):
        split({"test": values * 30}, column="test")


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(TableError, match=r"no validation column 'tests'.*mean 'test'"):
        split({"test": [True, False] * 30}, column="tests")
