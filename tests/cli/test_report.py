import pyarrow as pa

from tfbbb.cli.report import (
    echo_identifiers,
    echo_metrics,
    echo_recipe,
    echo_schema,
)
from tfbbb.data import Schema


def test_the_schema_lists_numeric_and_text_columns(capsys):
    numbers = {f"n{i}": range(10) for i in range(14)}
    table = pa.table({**numbers, "kind": ["a", "b"] * 5, "y": range(10)})
    echo_schema(Schema.infer(table, "y"))
    lines = capsys.readouterr().out.splitlines()
    shown = ", ".join(f"n{i}" for i in range(12))
    assert lines[1:] == [f"  numbers: {shown} and 2 more", "  text:    kind"]


def test_a_kind_without_columns_gets_no_line(capsys):
    echo_schema(Schema.infer(pa.table({"x": range(10), "y": range(10)}), "y"))
    assert capsys.readouterr().out.splitlines() == [
        "regression of 'y' from 1 column (1 of numbers)",
        "  numbers: x",
    ]


def test_text_distinct_in_most_rows_is_reported_as_an_identifier(capsys):
    def warnings(distinct, num_rows):
        names = [f"p{row % distinct}" for row in range(num_rows)]
        table = pa.table({"a name": names, "y": range(num_rows)})
        echo_identifiers(Schema.infer(table, "y"), num_rows)
        return capsys.readouterr().err

    assert warnings(51, 101) == (
        "Warning: column 'a name' has 51 distinct texts in 101 rows and looks like an "
        "identifier; --ignore 'a name' leaves it out.\n"
    )
    assert warnings(50, 60) == warnings(51, 102) == ""


def test_the_likelihoods_that_were_compared_are_listed(capsys):
    recipe = {"out_of_time": False, "tried": [], "likelihoods": []}
    echo_recipe(recipe)
    assert capsys.readouterr().out == ""
    recipe["likelihoods"] = [
        {"likelihood": "student_t", "log_likelihood": -1.25, "kept": False},
        {"likelihood": "poisson", "log_likelihood": -1.125, "kept": True},
    ]
    echo_recipe(recipe)
    assert capsys.readouterr().out.splitlines() == [
        "likelihoods tried, by the log-likelihood of rows left out:",
        "  student_t              -1.25",
        "  poisson               -1.125  kept",
    ]


def test_a_note_explains_the_nll_of_the_progress_bar(capsys):
    echo_metrics({"rmse": 1.5, "log_likelihood": -0.75, "nll": 0.75})
    figures, note = capsys.readouterr().out.split(
        "These metrics average over the posterior. "
    )
    assert figures.splitlines() == [
        "  root mean squared error          1.5",
        "  log-likelihood per row         -0.75",
    ]
    assert note.startswith("The nll and val_nll of the progress\nbar")
    assert "of single draws of the weights" in note


def test_metrics_without_a_log_likelihood_get_no_note(capsys):
    echo_metrics({"rmse": 1.5})
    assert len(capsys.readouterr().out.splitlines()) == 1
