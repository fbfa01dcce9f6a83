import json
import subprocess
import sys

import pytest
from pydantic import ValidationError

from tfbbb.training.spec import JobSpec


def job(**fields):
    return JobSpec.model_validate({"target": "y", **fields})


def test_a_target_alone_is_a_job():
    spec = job()
    assert spec.model.posterior.name == "mean_field_normal"
    assert spec.start_from is None
    assert job(target=["y"]) == spec


def test_a_name_means_the_family_with_its_defaults():
    by_name = job(model={"posterior": "low_rank_normal", "prior": "laplace"})
    with_options = job(
        model={
            "posterior": {"name": "low_rank_normal", "rank": 2},
            "prior": {"name": "laplace", "scale": "fan_in"},
        }
    )
    assert by_name == with_options


def test_json_says_all_of_a_spec():
    spec = job(
        features=["a", "b"],
        model={
            "hidden_units": [8],
            "posterior": "matrix_normal",
            "likelihood": {"name": "student_t", "df": 4},
            "members": 3,
        },
        training={"steps": 100, "kl_schedule": {"name": "tempered", "temperature": 2}},
        start_from={"model": "m", "version": 3},
    )
    assert JobSpec.model_validate_json(spec.model_dump_json()) == spec
    assert JobSpec.model_validate(json.loads(spec.model_dump_json())) == spec


def test_a_spec_can_not_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        job().target = "z"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"colour": "red"}, "Extra inputs are not permitted"),
        ({"training": {"epochs": True}}, "valid integer"),
        ({"training": {"epochs": "5"}}, "valid integer"),
        ({"training": {"epochs": 0}}, "greater than or equal to 1"),
        ({"training": {"epochs": 5, "steps": 5}}, "`epochs` or `steps`, not both"),
        ({"training": {"learning_rate": float("nan")}}, "finite"),
        ({"training": {"learning_rate": float("inf")}}, "finite"),
        ({"training": {"learning_rate": -1}}, "greater than 0"),
        (
            {"model": {"prior": {"name": "normal", "scale": 1e-300}}},
            r"in size \[type=value_error, input_value=1e-300",
        ),
        (
            {"model": {"likelihood": {"name": "beta", "high": 1e300}}},
            r"in size \[type=value_error, input_value=1e\+300",
        ),
        ({"training": {"seed": 2**31}}, "less than or equal"),
        ({"training": {"validation": {"fraction": 1.0}}}, "less than 1"),
        (
            {"training": {"validation": {"fraction": 0.1, "column": "c"}}},
            "a `fraction` or a `column`, not both",
        ),
        ({"training": {"validation": {"column": "y"}}}, "cannot be the target"),
        ({"training": {"validation": {"time": "y"}}}, "target 'y' cannot decide"),
        (
            {"training": {"validation": {"time": "t", "group": "g"}}},
            "give one of `column`, `time` and `group`",
        ),
        (
            {
                "training": {"validation": {"group": "g"}},
                "recalibration": {"name": "auto", "by": "g"},
            },
            "'g' is not one",
        ),
        ({"training": {"kl_schedule": "tempered"}}, "temperature"),
        ({"training": {"early_stopping": {"patience": 0}}}, "greater than or equal"),
        ({"features": []}, "at least 1 item"),
        ({"features": ["a", "a"]}, "names the column 'a' 2 times"),
        ({"features": ["a", "y"]}, "the target 'y' cannot be a feature"),
        ({"target": ""}, "of a column, of 1 to 10000 characters"),
        ({"target": ["a", "a"]}, "Names the column 'a' 2 times"),
        ({"target": []}, "or a list of at most 50 names"),
        ({"target": ["a", "b"], "features": ["b"]}, "the target 'b' cannot be a feat"),
        ({"target": ["a", "b"], "task": "classification"}, "only if they are numbers"),
        ({"event": "y"}, "cannot be the target"),
        ({"event": "e", "exposure": "x"}, "name one only"),
        ({"event": "e", "model": {"likelihood": "gamma"}}, "the likelihood 'gamma'"),
        ({"exposure": "y"}, "cannot be the target"),
        ({"exposure": "x", "features": ["x", "z"]}, "cannot be the feature"),
        ({"exposure": "x", "model": {"likelihood": "beta"}}, "the likelihood 'beta'"),
        ({"exposure": "x", "task": "classification"}, "received classification"),
        (
            {"task": "regression", "model": {"likelihood": "categorical"}},
            "the likelihood 'categorical' is for a classification",
        ),
        ({"start_from": {"model": "../secret", "version": 1}}, "pattern"),
        ({"start_from": {"model": "m", "version": 0}}, "greater than or equal"),
    ],
)
def test_senseless_spec_is_refused_with_the_reason(fields, reason):
    with pytest.raises(ValidationError, match=reason):
        job(**fields)


def test_specs_are_read_without_tensorflow():
    program = (
        "import sys; from tfbbb.training.spec import JobSpec; "
        "JobSpec(target='y').check_columns([{'name': 'y', 'type': 'number'}, "
        "{'name': 'x', 'type': 'number'}]); "
        "print({'tensorflow', 'keras'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_every_field_is_described_in_the_json_schema():
    schema = JobSpec.model_json_schema()
    described = schema["properties"].keys() - {"model", "training"}
    for name in described:
        assert schema["properties"][name]["description"]
    named = schema["$defs"]["ModelSpec"]["properties"]["posterior"]["anyOf"]
    assert "matrix_normal" in named[0]["enum"]
    assert all(part["description"] for part in schema["$defs"].values())


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("x", "Must map names of at most 100000 columns"),
        ({"x": 3}, "Must map names of columns to texts of 1 to 10000 characters"),
        ({"": "number"}, "Must map names of columns to texts of 1 to 10000"),
        ({"x": "number", "y": "numbers"}, "Column 'y': A column must be one of"),
        ({"x": "ordered:low"}, "Column 'x': An ordered column needs its texts"),
    ],
)
def test_what_columns_are_is_checked(columns, sentence):
    with pytest.raises(ValidationError, match=sentence):
        JobSpec(target="target", columns=columns)


def test_only_the_first_fault_of_columns_is_told():
    columns = {f"x{place}": "wrong" for place in range(1000)}
    with pytest.raises(ValidationError) as caught:
        JobSpec(target="target", columns=columns)
    assert caught.value.error_count() == 1
