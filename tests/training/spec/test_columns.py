import pytest

from tfbbb.training.spec import JobSpec, SpecError

COLUMNS = [
    {"name": "age", "type": "number", "missing": 3, "distinct": 50},
    {"name": "kind", "type": "text", "missing": 0, "distinct": 4},
    {"name": "code", "type": "text", "missing": 0, "distinct": 1001},
    {"name": "town", "type": "text", "missing": 0, "distinct": 2, "kind": "text",
     "most_common": [["Bern", 3], ["Uri", 2]]},
    {"name": "born", "type": "date", "missing": 0, "distinct": 90},
    {"name": "list", "type": "other", "missing": 0, "distinct": None},
    {"name": "empty", "type": "text", "missing": 100, "distinct": 0},
    {"name": "test", "type": "boolean", "missing": 0, "distinct": 2},
    {"name": "same", "type": "number", "missing": 0, "distinct": 1, "min": 1, "max": 1},
    {"name": "cost", "type": "number", "missing": 0, "distinct": 100, "min": -1.5,
     "max": 80.0},
    {"name": "visits", "type": "number", "missing": 0, "distinct": 9, "min": 0,
     "max": 12},
]  # fmt: skip


def check(**fields):
    features = {"features": ["age", "kind"]}
    JobSpec.model_validate({"target": "cost", **features, **fields}).check_columns(
        COLUMNS
    )


def test_a_table_that_has_what_is_asked_for_passes():
    check()
    check(target="kind", features=["age"])
    check(target="test", task="regression")
    check(target="visits", model={"likelihood": "poisson"})
    check(training={"validation": {"column": "test"}})
    check(training={"validation": {"time": "born"}})
    check(training={"validation": {"group": "code", "fraction": 0.2}})
    good = ["age", "kind", "visits", "cost"]
    columns = [column for column in COLUMNS if column["name"] in (*good, "born")]
    spec = {"target": "cost", "training": {"validation": {"time": "born"}}}
    JobSpec.model_validate(spec).check_columns(columns)
    # Rows without a target are left out, and useless columns too; text may be numbers.
    check(target="age", features=["kind"])
    check(features=None)
    check(features=["born", "code"])
    check(target="code")
    check(target="town")
    check(target="kind", task="regression", features=["age"])
    check(target="born", columns={"born": "number"})


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"age": "numbr"}, "A column must be one of number, "),
        ({"cost": "ignore"}, "the target 'cost' cannot be ignored"),
        ({"age": "ignore"}, "the feature 'age' cannot be ignored"),
    ],
)
def test_an_override_must_have_a_meaning(columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        check(columns=columns)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"target": "Costs"}, r"no target column 'Costs' \(did you mean 'cost'\?\)"),
        ({"features": ["aeg"]}, r"no feature column 'aeg'.*columns are 'age'"),
        ({"features": ["aged", "x"]}, r"columns 'aged' \(.*'age'\?\) and 'x'; its"),
        ({"training": {"validation": {"column": "tst"}}}, "did you mean 'test'"),
        ({"training": {"validation": {"time": "tst"}}}, "no time column 'tst'"),
        ({"target": "empty"}, "The target 'empty' has no values"),
        ({"columns": {"x": "text"}}, "no overruled column 'x'"),
        ({"target": "same"}, "the same value in every row"),
        (
            {"target": "town", "task": "regression"},
            "has texts such as 'Bern', 'Uri', but must hold numbers",
        ),
        (
            {"target": "town", "model": {"likelihood": "poisson"}},
            "has texts such as 'Bern', 'Uri', but must hold numbers",
        ),
        ({"target": "born"}, "values of type date, but must hold numbers"),
    ],
)  # fmt: skip
def test_what_a_table_lacks_is_said_in_one_sentence(fields, sentence):
    with pytest.raises(SpecError, match=sentence):
        check(**fields)


def test_a_table_of_the_target_alone_is_refused():
    with pytest.raises(SpecError, match="no column other than the target 'cost'"):
        JobSpec(target="cost").check_columns([{"name": "cost", "type": "number"}])


def test_unknown_facts_about_a_column_do_not_refuse_it():
    columns = [{"name": name, "type": "number"} for name in ("x", "y", "held_out")]
    JobSpec.model_validate(
        {
            "target": "y",
            "model": {"likelihood": "gamma"},
            "training": {"validation": {"column": "held_out"}},
        }
    ).check_columns(columns)
