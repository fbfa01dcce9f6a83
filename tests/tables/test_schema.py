import json

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Schema, TableError, read_table
from tfbbb.tables.override import Override
from tfbbb.tables.scan import TableScan, read_cells
from tfbbb.tables.stored_table import StoredTable
from tfbbb.tables.target import (
    UnusableTarget,
    missing_values,
    read_known_targets,
    rows_with_target,
)


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


def test_spellings_of_a_class_are_one_with_a_remark():
    table = table_of(y=["Yes", "yes", "YES ", "no", "No", "no"] * 2)
    schema = Schema.infer(table, "y")
    assert schema.classes == ("no", "yes")
    assert schema.targets(table)[:6].tolist() == [1, 1, 1, 0, 0, 0]
    assert schema.target.remarks == (
        "Its 'Yes' and 'yes' and 'YES ' are one class, 'yes'.",
    )
    known = read_known_targets(table, ["y"], schema.classes, [schema.target.notation])
    assert known.values[:6].tolist() == [1, 1, 1, 0, 0, 0]
    # Genotypes.
    schema = Schema.infer(table_of(y=["AA", "Aa", "aa"] * 4), "y")
    assert schema.classes == ("AA", "Aa", "aa")


def test_a_class_of_one_row_and_a_grade_of_none_are_said_before_training():
    targets = table_of(y=["rare", *["yes", "no"] * 5, "no"])
    (said,) = Schema.infer(targets, "y").target.remarks
    assert said.startswith("The class 'rare' has 1 row, too few to learn it")
    grades = table_of(y=[1, 2, 4, 5] * 3)
    (said,) = Schema.infer(grades, "y", task="regression").target.remarks
    assert said.startswith("No row has the grade 3 between 1 and 5")
    # With a grade more.
    whole = table_of(y=[1, 2, 3, 4] * 3)
    assert not Schema.infer(whole, "y", task="regression").target.remarks


def test_na_among_codes_of_two_letters_is_a_class(tmp_path):
    path = tmp_path / "continents.csv"
    codes = ["SA", "NA", "EU", "AS", "NA", ""]
    rows = [f"{row},{code},{code or 'x'}" for row, code in enumerate(4 * codes)]
    path.write_text("\n".join(["a,continent,other", *rows]))
    table = read_table(path)
    assert table["continent"].to_pylist()[:6] == ["SA", "NA", "EU", "AS", "NA", None]
    assert table["other"].to_pylist()[:6] == ["SA", None, "EU", "AS", None, "x"]
    known, _ = rows_with_target(table, "continent")
    schema = Schema.infer(table.filter(pa.array(known)), "continent")
    assert schema.classes == ("AS", "EU", "NA", "SA")
    assert schema.target.remarks == (
        "Its 'NA' is a code of two letters as the others are, not a missing value.",
    )


def test_classes_of_a_file_are_those_that_are_written(tmp_path):
    path = tmp_path / "classes.csv"
    rows = [f"{row},{['1.0', '2.0', 'x'][row % 3]}" for row in range(30)]
    path.write_text("\n".join(["a,y", *rows]))
    table = read_cells(path)
    schema = Schema.infer(table, "y")
    assert schema.classes == ("1.0", "2.0", "x")
    # Without the third class, the cells are plain numbers.
    numbers = table.filter(pa.array([True, True, False] * 10))
    assert schema.targets(numbers).tolist() == [0, 1] * 10
    known = read_known_targets(numbers, ["y"], schema.classes, [schema.target.notation])
    assert known.values.tolist() == [0, 1] * 10


def test_a_file_with_decimal_commas_has_points_between_thousands(tmp_path):
    path = tmp_path / "towns.csv"
    rows = [f"{10 + row}.500;{row},5;{row}" for row in range(12)]
    path.write_text("\n".join(["people;area;doctors", *rows]))
    for table in (
        read_table(path),
        StoredTable.from_scan(TableScan(path), tmp_path / "scratch"),
    ):
        schema = Schema.infer(table, "doctors", features=["people", "area"])
        assert schema.features[0].high == 21500.0
        assert Schema.infer(table, "people").target.low == 10500.0


def test_composed_and_decomposed_letters_are_equal():
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    table = table_of(kind=[composed, decomposed, "bar"] * 4)
    schema = Schema.infer(table, "y")
    assert schema.features[1].categories == ("bar", composed)
    assert schema.inputs(table)["kind"][:2].tolist() == [composed] * 2


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64()])
def test_whole_numbers_are_classes_in_the_order_of_their_values(type_):
    table = table_of(y=pa.array([10, 2, -1, 0] * 3, type_))
    schema = Schema.infer(table, "y", task="classification")
    assert schema.classes == ("-1", "0", "2", "10")
    assert schema.targets(table)[:4].tolist() == [3, 2, 0, 1]
    assert schema.targets(table).dtype == np.int32


def test_only_statistics_and_categories_come_from_training_rows():
    table = table_of(kind=["a"] * 11 + ["z"])
    schema = Schema.infer(table, "y", training_rows=np.arange(11))
    x, kind = schema.features
    assert x.mean == 5.0
    assert kind.categories == ("a",)
    assert schema.target.mean == 10.0


Y = list(np.arange(12.0))


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ({}, {"target": "z"}, r"no target column 'z'.*'x', 'kind', 'y'"),
        ({}, {"target": "kin"}, "did you mean 'kind'"),
        ({}, {"features": ["x", "x"]}, "'x' appears 2 times"),
        ({}, {"features": ["x", "y"]}, "target 'y' cannot be a feature"),
        ({}, {"features": []}, "no column other than the target 'y'"),
        ({"y": replaced(Y, 4, None)}, {}, "'y' has no value in row 4"),
        ({"y": replaced(Y, 4, np.inf)}, {}, "'y' has inf in row 4"),
        ({"y": ["a", "b", None] * 4}, {}, "'y' has no value in row 3"),
        ({"y": [3.5] * 12}, {}, "'y' has the same value, 3.5, in every"),
        ({"y": ["a", "b"] * 6}, {"task": "regression"}, "'y' has 'a' in row 1"),
        ({"y": replaced(Y, 4, 0.5)}, {"task": "classification"}, "value 0.5 in row 4"),
        ({"y": pa.array(range(12), pa.date32())}, {}, "'y' holds values of type date"),
        (
            {"kind": pa.nulls(12)},
            {"features": ["kind"]},
            "'kind' has no values; leave it out",
        ),
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


def test_a_target_with_several_odd_cells_is_refused():
    table = numbers_but("x1", "x2", "x3").rename_columns(["y", "x"])
    with pytest.raises(TableError, match="'y': it is mostly numbers, but 3 cells are"):
        Schema.infer(table, "y")


def test_mostly_numeric_text_is_categories_with_a_remark():
    table = numbers_but("x1", "x2", "-", "x1")
    (x,) = Schema.infer(table, "y", features=["x"]).features
    assert x.kind == "categorical"
    assert "mostly numbers, but 3 cells are not, such as 'x1'" in x.remarks[0]


@pytest.mark.parametrize(
    "texts",
    [
        # One text in eight is not a number; postal codes; few numbers beside words.
        [f"x{i}" for i in range(5)] + [f"{i}" for i in range(35)],
        [f"00{i}" for i in range(40)],
        ["1", "2", "low", "high"] * 10,
    ],
)
def test_text_with_few_numbers_or_few_categories_is_accepted(texts):
    table = pa.table({"x": texts, "y": np.arange(40.0)})
    (x,) = Schema.infer(table, "y", features=["x"]).features
    assert set(x.categories) == set(texts)


def test_fewer_than_ten_rows_are_refused():
    with pytest.raises(TableError, match="has 9 rows; at least 10"):
        Schema.infer(table_of().slice(0, 9), "y")
    with pytest.raises(TableError, match="has 1 row; at least 10"):
        Schema.infer(table_of().slice(0, 1), "y")


def test_too_many_classes_are_refused():
    table = pa.table({"x": range(3003), "y": [f"t{i // 3}" for i in range(3003)]})
    with pytest.raises(TableError, match="'y' has 1001 classes; at most 1000"):
        Schema.infer(table, "y")


GENERATOR = np.random.default_rng(0)
Z = GENERATOR.normal(size=100)
TARGET = GENERATOR.normal(size=100)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ([5] * 100, "the same value in every row"),
        (range(1, 101), "numbers the rows"),
        ([f"customer {i}" for i in range(100)], "a different text in each row"),
        ([f"({i}.25, -{i}.5)" for i in range(100)], "pairs as two columns"),
        ([f"a fine day, the {i}th of all of them" for i in range(100)], "free text"),
        (Z, "tells the same of each row as column 'z'"),
        (100 - 3 * TARGET, "the target 'y' in other units"),
        ([[1]] * 100, "values of type list"),
    ],
)
def test_useless_columns_and_copies_of_the_target_are_left_out(column, reason):
    table = {"z": Z, "x": pa.array(column), "y": TARGET}
    schema = Schema.infer(table, "y")
    assert [feature.name for feature in schema.features] == ["z"]
    ((name, said),) = schema.left_out
    assert name == "x"
    assert reason in said
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.mark.parametrize(
    ("column", "remark"),
    [
        (np.exp(TARGET), "alone tells the order of the target"),
        (TARGET + 0.001 * Z**2, "alone tells the order of the target"),
        (range(7000, 7100), "a time or the reading of a meter"),
        ([f"t{i % 60}" for i in range(100)], "looks like an identifier"),
    ],
)
def test_suspicious_columns_are_kept_with_a_remark(column, remark):
    schema = Schema.infer({"z": Z, "x": column, "y": TARGET}, "y")
    assert remark in schema.features[1].remarks[0]
    assert not schema.left_out


def test_all_rows_decide_what_a_column_tells():
    x, noise = np.random.default_rng(0).normal(size=(2, 12_000))
    early = np.arange(len(x)) < 6000
    table = {"z": noise**2, "x": x, "y": np.where(early, x, noise)}
    assert not Schema.infer(table, "y").features[1].remarks


def test_a_copy_of_the_classes_is_left_out():
    classes = ["yes", "no"] * 50
    table = {"z": Z, "x": ["A" if c == "yes" else "B" for c in classes], "y": classes}
    assert Schema.infer(table, "y").left_out == (
        ("x", "It is a copy of the target 'y'."),
    )
    table["x"] = [f"{c}{i % 3}" for i, c in enumerate(classes)]
    assert "determines the target" in Schema.infer(table, "y").features[1].remarks[0]


def test_named_features_and_the_last_one_are_kept():
    table = {"z": Z, "x": range(100), "y": TARGET}
    schema = Schema.infer(table, "y", features=["x", "z"])
    assert [feature.name for feature in schema.features] == ["x", "z"]
    schema = Schema.infer({"x": range(100), "y": TARGET}, "y")
    assert schema.features[0].remarks == ("It numbers the rows.",)


def test_overrides_leave_out_and_reinterpret_columns():
    table = {"z": Z, "x": ["low", "high"] * 50, "d": ["1/2/20"] * 50 + ["3/4/20"] * 50}
    columns = {"z": "ignore", "x": "ordered:low,high", "d": "date:day-first"}
    schema = Schema.infer({**table, "y": TARGET}, "y", columns=columns)
    assert [c.meaning for c in schema.features] == ["ordered", "date"]
    assert schema.features[1].low == np.datetime64("2020-02-01", "s").astype(int)
    assert dict(schema.left_out) == {"z": "As asked."}
    with pytest.raises(TableError, match=r"no overruled column 'zz'"):
        Schema.infer({**table, "y": TARGET}, "y", columns={"zz": "text"})
    with pytest.raises(TableError, match=r"Column 'z': A column must be one of"):
        Schema.infer({**table, "y": TARGET}, "y", columns={"z": "nothing"})


@pytest.mark.parametrize(
    ("texts", "kind", "sentence"),
    [
        (["CA", "OH"], "boolean", "boolean, as asked: none of its texts, such as 'CA'"),
        (["1/2/20", "1/13/20", "1/14/20"], "date:day-first", "2 of its 3 texts"),
    ],
)
def test_an_override_must_suit_most_texts(texts, kind, sentence):
    table = {"x": (texts * 50)[:100], "z": Z, "y": TARGET}
    with pytest.raises(TableError, match=sentence):
        Schema.infer(table, "y", columns={"x": kind})


def test_classes_that_differ_in_all_rows_are_asked_for_by_the_task():
    target = [f"${i}.99" for i in range(100)]
    with pytest.raises(TableError, match=r"100 classes in 100 rows.*y=number"):
        Schema.infer({"z": Z, "y": target}, "y", columns={"y": "text"})
    schema = Schema.infer(
        {"z": Z, "y": target}, "y", task="classification", columns={"y": "text"}
    )
    assert len(schema.classes) == 100


@pytest.mark.parametrize(
    ("target", "task", "remark"),
    [
        ([f"${i}.99" for i in range(100)], "regression", None),
        (["1.234,5", "7,25"] * 50, "regression", None),
        ([0, 1] * 50, "classification", "--task regression"),
        ([3, 4, 5, 6] * 25, "regression", "--task classification"),
        (["1", "2", "3", "4"] * 25, "classification", "--task regression"),
        (["Yes", "no"] * 50, "classification", None),
        ([True, False] * 50, "classification", None),
    ],
)
def test_the_task_of_a_target_is_chosen_and_said(target, task, remark):
    schema = Schema.infer({"z": Z, "y": target}, "y")
    assert schema.task == task
    assert (remark is None) == (not schema.target.remarks)
    assert remark is None or remark in schema.target.remarks[0]
    for other in ("regression", "classification"):
        if remark is not None:
            assert Schema.infer({"z": Z, "y": target}, "y", task=other).task == other


def test_rows_whose_class_is_a_dash_have_no_target():
    cells = ["win", "draw", "-", "win"] * 4
    table = pa.table({"y": cells, "x": np.square(range(16))})
    known, choice = rows_with_target(table, "y")
    assert known.tolist() == [True, True, False, True] * 4
    schema = Schema.infer(table.filter(pa.array(known)), "y", target_choice=choice)
    assert schema.classes == ("draw", "win")
    later = pa.table({"y": ["-", "win"]})
    missing = missing_values(later, "y", schema.target.notation)
    assert missing.tolist() == [True, False]


def test_warnings_name_values_that_training_did_not_have():
    table = {
        "x": np.linspace(0, 1, 40) ** 2,
        "kind": ["a", "b"] * 20,
        "day": pa.array((np.arange(40) ** 2).tolist(), pa.date32()),
        "gaps": [None, 1.0, 2.0, 3.0] * 10,
        "y": np.sin(np.arange(40.0)),
    }
    schema = Schema.infer(table, "y")
    asked = {
        "x": [0.5, None, 7.0],
        "kind": ["a", "c", None],
        "day": ["1970-01-02", "1969-12-31", None],
        "gaps": [None, 2.0, 2.5],
    }
    assert schema.warnings(asked) == [
        [],
        [
            "Column 'x' has no value; the mean of training is assumed.",
            "Column 'kind' has the category 'c', unseen in training.",
            "Column 'day' is 1969-12-31, outside the range of training, 1970-01-01 to "
            "1974-03-02.",
        ],
        [
            "Column 'x' is 7, outside the range of training, 0 to 1.",
            "Column 'kind' has no value; the mean of the categories is assumed.",
            "Column 'day' has no value; the mean of training is assumed.",
        ],
    ]


def test_a_table_without_rows_has_no_targets():
    schema = Schema.infer(table_of(), "y")
    assert schema.targets(table_of().slice(0, 0)).shape == (0, 1)
    schema = Schema.infer(table_of(y=["a", "b"] * 6), "y")
    assert schema.targets(table_of(y=["a", "b"] * 6).slice(0, 0)).shape == (0,)


def test_an_unknown_class_is_refused_with_its_row():
    schema = Schema.infer(table_of(y=["a", "b"] * 6), "y")
    with pytest.raises(
        TableError, match=r"'c' in row 2, which is a class unseen.*'a', 'b'"
    ):
        schema.targets(table_of(y=["a", "c"] * 6))


def numbers_with(*values):
    """A table of 40 rows with whole numbers from 100 to 130, the last ones others."""
    numbers = [*(100 + 7 * row % 31 for row in range(40 - len(values))), *values]
    return pa.table({"x": numbers, "y": np.arange(40.0) * 3 % 7})


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ([-999, -999], 2),
        ([99999999] * 3, 3),
        ([-999, -999, 9999, 9999], 4),
        # So far away, one is enough.
        ([99999999], 1),
        ([-999], 1),
        # Within reach of the others, alone, or of other digits.
        ([999, 1500, 999], 0),
        ([-1, -1], 0),
    ],
)
def test_nines_far_outside_are_missing_values(values, missing):
    table = numbers_with(*values)
    (x,) = Schema.infer(table, "y", features=["x"]).features
    assert x.num_missing == missing
    assert len(x.remarks) == len(set(values)) if missing else not x.remarks
    assert np.isnan(x.values(table)).sum() == missing
    as_text = pa.table({"x": table["x"].cast(pa.string()), "y": table["y"]})
    np.testing.assert_array_equal(x.values(as_text), x.values(table))
    asked = Schema.infer(table, "y", features=["x"], columns={"x": "number"})
    assert asked.features[0].num_missing == 0


def test_a_row_whose_target_is_probably_a_typing_error_has_none():
    generator = np.random.default_rng(0)
    values = np.round(generator.normal(150.0, 20.0, size=60), 1)
    values[17] = 1e12
    table = pa.table({"x": np.arange(60), "y": values})
    known, choice = rows_with_target(table, "y")
    assert np.flatnonzero(~known).tolist() == [17]
    (remark,) = choice.remarks
    assert remark.startswith("Its 1000000000000, in 1 cell, is far outside of all ")
    kept, choice = rows_with_target(table, "y", None, Override("number"))
    assert kept.all()
    assert not choice.remarks
    # Spans of decades are no errors.
    table = table.set_column(1, "y", pa.array(np.exp(3.0 * generator.normal(size=60))))
    assert rows_with_target(table, "y")[0].all()


@pytest.mark.parametrize("as_text", [False, True])
def test_rows_whose_target_is_nines_have_no_target(as_text):
    table = numbers_with(-999, -999).rename_columns(["y", "x"])
    if as_text:
        table = table.set_column(0, "y", table["y"].cast(pa.string()))
    known, choice = rows_with_target(table, "y", "regression")
    assert known.tolist() == [True] * 38 + [False] * 2
    assert choice.remarks == (
        "Its -999, in 2 cells, is far outside of all other values, so these rows count "
        "as rows without a target; columns={'y': 'number'} (--column y=number) keeps "
        "them.",
    )
    schema = Schema.infer(table.filter(pa.array(known)), "y", target_choice=choice)
    assert schema.target.low == 100
    assert schema.target.remarks == choice.remarks
    later = pa.table({"y": [-999, 120, None]})
    missing = missing_values(later, "y", schema.target.notation)
    assert missing.tolist() == [True, False, True]
    kept, choice = rows_with_target(table, "y", None, Override("number"))
    assert kept.all()
    assert not choice.remarks
    with pytest.raises(TableError, match=r"no value \(or -999.*\) in row 39"):
        Schema.infer(table, "y", task="regression")


def test_classes_beside_nines_are_classes():
    table = pa.table({"y": [0, 1, 1, -999] * 10, "x": np.square(range(40))})
    known, choice = rows_with_target(table, "y")
    schema = Schema.infer(table.filter(pa.array(known)), "y", target_choice=choice)
    assert (schema.task, schema.classes) == ("classification", ("0", "1"))
    later, notation = pa.table({"y": [-999, 2, 1]}), schema.target.notation
    assert missing_values(later, "y", notation).tolist() == [True, False, False]
    found = read_known_targets(later, ["y"], schema.classes, [notation])
    assert found.values.tolist() == [-1, -1, 1]
    assert found.unusable == {1: UnusableTarget.unseen("2")}


def test_an_odd_cell_of_a_later_table_is_missing_with_a_warning():
    schema = Schema.infer(numbers_but("Unknown", "Unknown"), "y")
    later = pa.table({"x": ["2.5", "unknown", "broken"]})
    np.testing.assert_array_equal(schema.inputs(later)["x"], [2.5, np.nan, np.nan])
    assert schema.warnings(later) == [
        [],
        [],
        ["Column 'x' has 'broken', which is not a number and counts as missing."],
    ]


def test_an_unseen_level_is_missing_and_any_other_odd_cell_is_refused():
    levels = pa.array(["low", "mid", "high"])
    indices = pa.array([0, 1, 2] * 4, pa.int8())
    ordered = pa.DictionaryArray.from_arrays(indices, levels, ordered=True)
    table = pa.table({"x": ordered, "z": np.arange(12.0) ** 2, "y": np.arange(12.0)})
    schema = Schema.infer(table, "y")
    later = pa.table({"x": ["high", "huge"], "z": [1.0, 2.0]})
    with pytest.warns(UserWarning, match="'x' has 'huge', which is not one of its"):
        read = schema.inputs(later, strict=True)
    np.testing.assert_array_equal(read[:, 0], [2.0, np.nan])
    wrong = later.set_column(1, "z", pa.array(["1", "two"]))
    with pytest.raises(TableError, match=r"^Column 'z' has 'two'.* in row 2\.$"):
        schema.inputs(wrong, strict=True)


def test_all_columns_with_trouble_are_in_one_message():
    table = table_of(x=pa.array([{"a": 1}] * 12), z=replaced(Y, 12, 1e39))
    message = r"'x' holds values of type struct.*'z' has 1e\+39 in row 12"
    with pytest.raises(TableError, match=message):
        Schema.infer(table, "y", features=["x", "kind", "z"])
    schema = Schema.infer(table_of(), "y")
    dates = pa.array(range(12), pa.date32())
    with pytest.raises(TableError, match=r"'x' holds values.*'kind' holds values"):
        schema.inputs(table_of(x=dates, kind=dates))
