import inspect
import json

import numpy as np

from tfbbb.cli.figures import echo_recipe
from tfbbb.cli.inspect import echo_columns
from tfbbb.cli.inspect import inspect as inspect_table
from tfbbb.cli.job_options import job_options
from tfbbb.cli.train import train
from tfbbb.cli.tune import tune
from tfbbb.tables import Schema

GENERATOR = np.random.default_rng(0)


def make_schema(**columns):
    table = {"n": GENERATOR.normal(size=60), **columns}
    return Schema.infer({**table, "y": GENERATOR.normal(size=60)}, "y")


def test_each_column_has_a_line_with_its_kind_and_values(capsys):
    schema = make_schema(
        price=[f"${i % 7},000" if i else "?" for i in range(60)],
        day=[f"{1 + i % 28}.{1 + i % 12}.2020" for i in range(60)],
        kind=["a", "b", "c", "d", "e", "?"] * 10,
        garden=["yes", "no"] * 30,
        same=["x"] * 60,
        name=[f"p{i % 51}" for i in range(60)],
    )
    echo_columns(schema)
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split() for line in lines]
    assert cells[3][:5] == ["price", "number", "(currency,", "thousands", "with"]
    assert cells[3][-4:] == ["1", "0", "to", "6000"]
    assert cells[4] == [
        "day",
        "date",
        "(day",
        "first)",
        "2020-01-01",
        "to",
        "2020-12-24",
    ]
    assert cells[5] == ["kind", "text", "10", "a,", "b,", "c,", "d", "and", "1", "more"]
    assert cells[6] == ["garden", "boolean", "no,", "yes"]
    assert lines[-2:] == [
        "Column 'name': It has 51 distinct texts in 60 rows and looks like an "
        "identifier.",
        "Left out 'same': It has the same value in every row, so a model learns "
        "nothing from it.",
    ]


def test_a_table_is_inspected_with_and_without_a_target(run, data):
    result = run("inspect", data, "--column", "ward=text")
    assert "60 rows" in result.stdout
    result = run("inspect", data, "--target", "effect", "--json")
    entries = {each["name"]: each for each in json.loads(result.stdout)}
    assert entries["effect"]["role"] == "target"
    assert entries["ward"]["kind"] == "text"


def test_a_job_command_asks_for_options_that_a_job_has():
    known = {option.name for option in job_options()}
    for command in (inspect_table, train, tune):
        own = inspect.signature(command).parameters.values()
        asked = {each.name for each in own if each.kind is each.KEYWORD_ONLY}
        assert asked <= known


def test_remarks_are_printed_once(capsys):
    recipe = {"tried": [], "remarks": ["Column 'x' is late.", "1 row is rare."]}
    echo_recipe(recipe, said=("Column 'x' is late.",))
    assert capsys.readouterr().err == "Warning: 1 row is rare.\n"
    echo_recipe(recipe)
    assert capsys.readouterr().err.count("Warning: ") == 2


def test_the_likelihoods_that_were_compared_are_listed(capsys):
    recipe = {"out_of_time": False, "tried": [], "likelihoods": []}
    echo_recipe(recipe)
    assert capsys.readouterr().out == ""
    recipe["likelihoods"] = [
        {"likelihood": "student_t", "gain": 0.0, "kept": False},
        {"likelihood": "poisson", "gain": 0.125, "kept": True},
    ]
    echo_recipe(recipe)
    assert capsys.readouterr().out.splitlines() == [
        "likelihoods tried with neighbours in place of a network, by the gain of "
        "log-likelihood per row over the first:",
        "  student_t             +0.000",
        "  poisson               +0.125  kept",
    ]
