import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Schema, TableError, TableScan
from tfbbb.tables.writing import write_table
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


def test_the_last_rows_by_time_are_held_out():
    moments = np.random.default_rng(0).permutation(ROWS) // 4
    rows = split({"t": moments}, time="t")
    # Of moments of four rows, eight rows or four are as near to a tenth of 60.
    assert set(moments[rows.held_out]) in ({14}, {13, 14})
    assert moments[rows.training].max() < moments[rows.held_out].min()
    half = split({"t": moments.astype("M8[D]")}, time="t", fraction=0.5)
    assert len(half.held_out) in (28, 32)
    since = str(moments[half.held_out].min().astype("M8[D]"))
    assert half.description == {"by": "time", "column": "t", "since": since}


@pytest.mark.parametrize(
    ("validation", "held_out"),
    [({"time": "day"}, 6), ({"group": "ward", "fraction": 0.2}, 12), ({}, 6)],
)
def test_rows_on_disk_are_split_as_rows_in_memory(tmp_path, validation, held_out):
    days = np.datetime64("2024-01-01") + np.random.default_rng(0).permutation(ROWS)
    wards = [f"w{row % 10}" for row in range(ROWS)]
    # Each x is there twice.
    rows = table(day=days, ward=wards).set_column(0, "x", [np.arange(ROWS) // 2])
    write_table(rows, tmp_path / "rows.csv")
    fields = {"target": "y", "features": ["x"], "training": {"validation": validation}}
    # Early stopping needs held-out rows.
    fields["training"]["early_stopping"] = {}
    spec = JobSpec.model_validate(fields)
    scan = TableScan(tmp_path / "rows.csv")
    stored = prepare(scan, spec, directory=tmp_path / "stored")
    prepared = prepare(rows, spec)
    assert len(prepared.held_out_rows) == held_out
    assert stored.held_out_rows.tolist() == prepared.held_out_rows.tolist()
    assert stored.split == prepared.split
    if not validation:
        both = set(stored.held_out[0].ravel()) & set(
            stored.rows.at(np.arange(stored.rows.num_rows))[0].ravel()
        )
        assert not both


def test_whole_groups_are_held_out():
    groups = np.array(list("abcde") * 12)
    rows = split({"g": groups}, group="g", fraction=0.4)
    assert len(rows.held_out) == 24
    assert not set(groups[rows.training]) & set(groups[rows.held_out])
    assert rows.description == {"by": "group", "column": "g", "groups": 5}


def test_the_column_of_groups_is_a_feature_only_by_name():
    fields = {"target": "y", "training": {"validation": {"group": "when"}}}
    whole = table(when=np.arange(ROWS) // 2)
    prepared = prepare(whole, JobSpec.model_validate(fields))
    assert [column.name for column in prepared.schema.features] == ["x"]
    reason = "It decides which rows validation leaves out."
    assert prepared.schema.left_out == (("when", reason),)
    fields["features"] = ["x", "when"]
    prepared = prepare(whole, JobSpec.model_validate(fields))
    assert len(prepared.schema.features) == 2


def test_folds_of_members_get_the_groups():
    fields = {"target": "y", "training": {"validation": {"group": "g"}}}
    prepared = prepare(table(g=np.arange(ROWS) // 5), JobSpec.model_validate(fields))
    assert prepared.rows.num_rows == ROWS
    assert prepared.groups.tolist() == (np.arange(ROWS) // 5).tolist()


BY_DAY = JobSpec.model_validate(
    {"target": "y", "training": {"validation": {"time": "day"}}}
)


def test_members_leave_out_the_last_fifth_by_time():
    days = np.random.default_rng(0).permutation(ROWS)
    prepared = prepare(table(day=days.astype("M8[D]")), BY_DAY)
    assert prepared.rows.num_rows == ROWS
    np.testing.assert_array_equal(prepared.last, days >= 48)
    assert prepared.split == {"by": "time", "column": "day", "since": "1970-02-18"}


@pytest.mark.parametrize(("kind", "ends"), [("M8[D]", False), ("f8", True)])
def test_the_column_of_times_is_a_feature_unless_its_trend_ends(kind, ends):
    generator = np.random.default_rng(0)
    days, x = np.arange(300.0), generator.normal(size=300)
    level = np.where(days < 240, days, 0.0) if ends else days
    y = x + 0.05 * level + 0.5 * generator.normal(size=300)
    prepared = prepare(pa.table({"x": x, "day": days.astype(kind), "y": y}), BY_DAY)
    names = [column.name for column in prepared.schema.features]
    assert names == (["x"] if ends else ["x", "day"])
    assert (dict(prepared.schema.left_out).get("day") is not None) == ends


def copies(times, rows=ROWS):
    """A table of which each row is there several times."""
    x = np.arange(rows) // times
    return pa.table({"x": x, "y": np.arange(rows) * 0.5})


def test_copies_of_a_row_stay_on_one_side():
    spec = JobSpec.model_validate(
        {"target": "y", "training": {"validation": {"fraction": 0.2}}}
    )
    twice = copies(2)
    rows = split_rows(twice, Schema.infer(twice, "y"), spec)
    x = twice["x"].to_numpy()
    assert len(rows.held_out) == 12
    assert not set(x[rows.training]) & set(x[rows.held_out])
    assert rows.description == {
        "by": "random",
        "repeated_rows": ROWS,
        "kept_together": True,
    }
    folds = split_rows(twice, Schema.infer(twice, "y"), spec, num_folds=4)
    assert folds.groups.tolist() == x.tolist()


def test_rows_of_a_table_of_few_values_count_alone():
    thrice = copies(3)
    rows = split_rows(thrice, Schema.infer(thrice, "y"), JobSpec(target="y"))
    assert rows.groups is None
    assert rows.description["repeated_rows"] == ROWS
    assert not rows.description["kept_together"]


def test_copies_of_whole_rows_stay_together_however_many():
    four_times = np.arange(200) // 4
    noise = np.random.default_rng(0).normal(size=50)
    names = np.random.default_rng(1).choice(["a", "b"], 50)
    for y in (noise, noise.round(), names):
        rows = pa.table({"x": four_times, "y": y[four_times]})
        found = split_rows(rows, Schema.infer(rows, "y"), JobSpec(target="y"))
        assert found.description["kept_together"]
        assert not set(four_times[found.training]) & set(four_times[found.held_out])


def test_rare_classes_agree_by_chance():
    rare = np.where(np.arange(400) % 40, "no", "yes")
    rows = pa.table({"x": np.random.default_rng(0).integers(0, 20, 400), "y": rare})
    found = split_rows(rows, Schema.infer(rows, "y"), JobSpec(target="y"))
    assert not found.description["kept_together"]


def test_a_class_of_copies_alone_is_split():
    pairs = np.arange(12) // 2
    rows = pa.table({"x": pairs, "name": [f"n{pair}" for pair in pairs]})
    found = split_rows(rows, Schema.infer(rows, "name"), JobSpec(target="name"))
    assert len(found.held_out) == 6
    assert not found.description["kept_together"]


@pytest.mark.parametrize(
    ("validation", "columns", "sentence"),
    [
        ({"time": "t"}, {"t": [2020] * ROWS}, "time column 't' has the same value"),
        ({"time": "t"}, {"t": [1, None] * 30}, "'t' has no value in row 2"),
        ({"time": "tt"}, {"t2": range(ROWS)}, "has no time column 'tt'"),
        ({"group": "g"}, {"g": ["a"] * ROWS}, "group column 'g' has the same value"),
        ({"group": "g"}, {"g": ["a", None] * 30}, "'g' has no value in row 2"),
    ],
)
def test_a_column_that_decides_nothing_is_refused(validation, columns, sentence):
    with pytest.raises(TableError, match=sentence):
        split(columns, **validation)


def test_fewer_groups_than_folds_are_refused():
    spec = JobSpec.model_validate(
        {"target": "y", "training": {"validation": {"group": "g"}}}
    )
    with pytest.raises(TableError, match=r"has 3 groups, fewer than the 4 .* 0\.33"):
        prepare(table(g=list("abc") * 20), spec)


def test_classes_that_are_groups_are_refused():
    names = list("ab") * 30
    rows = pa.table({"x": range(ROWS), "y": names, "g": names})
    fields = {"target": "y", "training": {"validation": {"group": "g"}}}
    schema = Schema.infer(rows, "y", features=["x"])
    with pytest.raises(TableError, match="in one group of the group column 'g'"):
        split_rows(rows, schema, JobSpec.model_validate(fields))


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
