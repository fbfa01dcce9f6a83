import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.data import Column, TableError


def inferred(values, rows=None):
    return Column.infer(pa.table({"a": values}), "a", rows)


def test_statistics_use_known_values_in_double_precision():
    values = 1e8 + np.random.default_rng(0).normal(scale=100, size=50)
    column = inferred([None, *values])
    assert column.missing
    np.testing.assert_allclose(column.mean, values.mean(), rtol=1e-14)
    np.testing.assert_allclose(column.scale, values.std(), rtol=1e-9)


def test_statistics_use_training_rows_and_missing_uses_all_rows():
    column = inferred([1.0, 3.0, 100.0, None], np.array([0, 1]))
    assert (column.mean, column.scale, column.missing) == (2.0, 1.0, True)


def test_categories_come_from_training_rows_including_missing_as_empty_text():
    column = inferred(["b", None, "a", "c"], np.array([0, 1, 2]))
    assert column.categories == ("", "a", "b")
    assert column.missing


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ([True, False, None], "numeric", [1, 0, np.nan]),
        ([1, 2, 3], "numeric", [1, 2, 3]),
        (pa.array([2**64 - 1, 0, 7], pa.uint64()), "numeric", [2.0**64, 0, 7]),
        ([1.5, float("nan"), 2.0], "numeric", [1.5, np.nan, 2]),
        ([Decimal("1.25"), None, Decimal(2)], "numeric", [1.25, np.nan, 2]),
        (pa.array([4, None, 5]).dictionary_encode(), "numeric", [4, np.nan, 5]),
        (["a", None, ""], "categorical", ["a", "", ""]),
        (pa.array(["a", None], pa.large_string()), "categorical", ["a", ""]),
        (pa.array(["a", "b"]).dictionary_encode(), "categorical", ["a", "b"]),
    ],
)
def test_every_type_of_numbers_or_text_is_read(values, kind, read):
    table = pa.table({"a": values})
    column = Column.infer(table, "a", None)
    assert column.kind == kind
    np.testing.assert_array_equal(column.values(table), read)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (pa.array([0, 1], pa.date32()), r"date32\[day\]"),
        (pa.array([0, 1], pa.timestamp("s")), r"timestamp\[s\]"),
        (pa.array([0, 1], pa.duration("s")), r"duration\[s\]"),
        ([b"\xff", b"x"], "binary"),
        ([[1], [2]], "list"),
    ],
)
def test_other_types_are_refused(values, type_):
    with pytest.raises(TableError, match=f"'a' holds values of type {type_}"):
        inferred(values)


@pytest.mark.parametrize(
    "values",
    [
        [3.0] * 5,
        [0.1] * 5,
        [0.1, None] * 5,
        # Equal in single precision, in which models compute.
        [1e9, 1e9 + 1, 1e9 + 2],
        [1e-40, 2e-40, 3e-40],
    ],
)
def test_a_column_with_one_value_is_constant(values):
    column = inferred(values)
    assert column.constant
    assert column.scale == 1.0


def test_tiny_units_are_not_constant():
    assert not inferred([1e-12, 2e-12, 4e-12]).constant


@pytest.mark.parametrize("values", [[None] * 3, [np.nan] * 3, ["", None]])
def test_a_column_without_values_is_refused(values):
    with pytest.raises(TableError, match=r"Column 'a' has no values; leave it out\."):
        inferred(values)


def test_numbers_missing_in_all_training_rows_are_refused():
    with pytest.raises(TableError, match="no values in the training rows"):
        inferred([None, None, 1.0], np.array([0, 1]))


def test_a_column_may_have_at_most_a_thousand_categories():
    texts = [f"t{number}" for number in range(1001)]
    assert len(inferred(texts[:1000]).categories) == 1000
    with pytest.raises(TableError, match="'a' has 1001 distinct texts"):
        inferred(texts)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_infinite_values_are_refused_with_their_row(value):
    with pytest.raises(TableError, match=r"'a' has the value .* in row 3"):
        inferred([1.0, None, value])


def test_missing_values_unseen_in_training_are_refused_with_their_row():
    for trained, asked in [([1.0, 2.0], [1.0, None]), (["a", "b"], ["a", ""])]:
        with pytest.raises(TableError, match="'a' has no value in row 2"):
            inferred(trained).values(pa.table({"a": asked}))


def test_text_in_a_numeric_column_is_refused_with_its_row():
    with pytest.raises(TableError, match="'a' has the text 'x' in row 3"):
        inferred([1.0, 2.0]).values(pa.table({"a": ["1", "-2.5e3", "x"]}))


def test_texts_that_are_all_numbers_are_read_as_numbers():
    spelt = pa.table({"a": ["1", " -2.5e3 ", None]})
    values = inferred([1.0, None]).values(spelt)
    np.testing.assert_array_equal(values, [1.0, -2500.0, np.nan])


def test_numbers_in_a_text_column_are_refused_with_a_remedy():
    with pytest.raises(TableError, match=r"cast it .*text_columns=\['a'\]"):
        inferred(["007", "a"]).values(pa.table({"a": [7, 8]}))


def test_a_column_entirely_missing_at_prediction_is_read():
    asked = pa.table({"a": pa.nulls(2)})
    assert np.isnan(inferred([1.0, None]).values(asked)).all()
    assert inferred(["a", None]).values(asked).tolist() == ["", ""]


def test_a_missing_column_error_suggests_a_similar_name():
    with pytest.raises(TableError, match=r"no feature column 'a1' \(did you mean 'A1'"):
        Column("a1", "numeric").values(pa.table({"A1": [1.0]}))


def test_a_column_is_restored_from_json():
    for values in ([1.0, None, 2.5], ["b", None, "é"]):
        column = inferred(values)
        assert Column.from_dict(json.loads(json.dumps(column.to_dict()))) == column


def test_empty_texts_among_numbers_are_missing_values():
    digits = [str(number) for number in range(30)]
    column = inferred(["", *digits])
    assert column.missing
    assert len(column.categories) == 31


@pytest.mark.parametrize(("rows", "intervals"), [(100, 12), (4000, 20), (20_000, 48)])
def test_more_rows_get_more_edges(rows, intervals):
    column = inferred(np.random.default_rng(0).normal(size=rows))
    assert len(column.edges) == intervals + 1
