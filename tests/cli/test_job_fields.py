import json

import pytest

from tfbbb.cli.errors import CommandError
from tfbbb.cli.job_fields import job_fields, leave_out


def fields(spec=None, **options):
    return job_fields("y", spec, name="name", **options)


@pytest.mark.parametrize(
    ("name", "value"), [("partitions", 4), ("devices", "all"), ("max_seconds", 60.0)]
)
def test_options_are_fields_of_the_training(name, value):
    assert fields(**{name: value})["training"] == {name: value}


def test_options_of_the_validation_are_fields():
    given = fields(validation_time="sold", validation_fraction=0.2)
    assert given["training"] == {"validation": {"time": "sold", "fraction": 0.2}}
    assert fields(validation_group="ward")["training"]["validation"] == {
        "group": "ward"
    }
    assert "training" not in fields()


@pytest.mark.parametrize(
    ("of_file", "options", "expected"),
    [
        ({"group": "g"}, {"fraction": 0.3}, {"group": "g", "fraction": 0.3}),
        ({"fraction": 0.3}, {"time": "t"}, {"time": "t", "fraction": 0.3}),
        (
            {"group": "g", "fraction": 0.3},
            {"time": "t"},
            {"time": "t", "fraction": 0.3},
        ),
        ({"column": "c"}, {"fraction": 0.3}, {"fraction": 0.3}),
        ({"group": "g", "fraction": 0.3}, {"column": "c"}, {"column": "c"}),
    ],
)
def test_options_override_the_validation_of_a_file(
    tmp_path, of_file, options, expected
):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"training": {"validation": of_file, "epochs": 3}}))
    named = {f"validation_{name}": value for name, value in options.items()}
    training = fields(path, **named)["training"]
    assert training == {"validation": expected, "epochs": 3}


def test_a_column_that_decides_is_a_feature_only_by_name():
    given = fields(validation_group="ward")
    names = ["x", "ward", "y", "z"]
    assert leave_out(given, names, ["z"])["columns"] == {"z": "ignore"}
    with pytest.raises(CommandError, match="No column is left to predict 'y' from"):
        leave_out(given, names, ["x", "z"])
    given["features"] = ["x", "ward"]
    assert leave_out(given, names, ["x"])["features"] == ["ward"]
