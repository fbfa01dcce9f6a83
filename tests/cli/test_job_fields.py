import json
from typing import Annotated

import pytest
from pydantic import Field
from typer import BadParameter

from tfbbb.bayes.families.arguments import Integer, Number
from tfbbb.cli.errors import CommandError
from tfbbb.cli.job_options import job_fields, job_options, leave_out
from tfbbb.training.spec.families import Option, SpecPart


def fields(spec=None, **options):
    return job_fields("y", spec, options, name="name")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("task", "regression", {"task": "regression"}),
        ("column", ["a=b=text", "c=date"], {"columns": {"a=b": "text", "c": "date"}}),
        ("hidden", "50, 20", {"model": {"hidden_units": [50, 20]}}),
        ("hidden", "", {"model": {"hidden_units": []}}),
        ("effort", "quick", {"training": {"effort": "quick"}}),
        ("max_seconds", 60.0, {"training": {"max_seconds": 60.0}}),
        ("learning_rate", 0.1, {"training": {"learning_rate": 0.1}}),
        ("start_from", 3, {"start_from": {"model": "name", "version": 3}}),
        ("validation_time", "t", {"training": {"validation": {"time": "t"}}}),
        ("validation_group", "g", {"training": {"validation": {"group": "g"}}}),
    ],
)
def test_options_are_fields_of_a_job(option, value, expected):
    assert fields(**{option: value}) == {"target": "y", **expected}


def test_a_field_of_the_spec_declares_its_option():
    class Part(SpecPart):
        rows: Annotated[Integer, Field(ge=2, description="As `big`."), Option()] = 3
        big: Annotated[Number | None, Field(lt=1), Option("part_big")] = None
        other: str = ""

    class Whole(SpecPart):
        part: Part = Part()

    rows, big = job_options(Whole)
    assert (rows.name, rows.path, rows.help) == (
        "rows",
        ("part", "rows"),
        "As --part-big.",
    )
    assert (big.name, big.path) == ("part_big", ("part", "big"))
    assert rows.form.parse(2) == 2
    for option, wrong, rule in ((rows, 1, "at least 2"), (big, 1.0, "less than 1")):
        with pytest.raises(BadParameter, match=f"{wrong} must be {rule}"):
            option.form.parse(wrong)


def test_an_option_overrides_the_same_field_of_a_file(tmp_path):
    path = tmp_path / "spec.json"
    of_file = {
        "columns": {"a": "text", "b": "date"},
        "training": {
            "learning_rate": 0.5,
            "validation": {"group": "a", "fraction": 0.3},
        },
    }
    path.write_text(json.dumps(of_file))
    options = {"learning_rate": 0.1, "validation_fraction": 0.2}
    given = fields(path, column=["b=ignore"], **options)
    assert given["columns"] == {"a": "text", "b": "ignore"}
    assert given["training"] == {
        "learning_rate": 0.1,
        "validation": {"group": "a", "fraction": 0.2},
    }
    path.write_text(json.dumps({"training": {"steps": 50}}))
    with pytest.raises(CommandError, match="epochs"):
        fields(path, epochs=3)


def test_a_column_that_decides_is_a_feature_only_by_name():
    given = fields(validation_group="ward")
    names = ["x", "ward", "y", "z"]
    assert leave_out(given, names, ["z"])["columns"] == {"z": "ignore"}
    with pytest.raises(CommandError, match="No column is left to predict 'y' from"):
        leave_out(given, names, ["x", "z"])
    given["features"] = ["x", "ward"]
    assert leave_out(given, names, ["x"])["features"] == ["ward"]
