import math
import re
import signal

import numpy as np
import pytest

from tests.benchmarks.programs import load

program = load("program")


def test_mean_and_error_are_those_of_independent_values():
    values = np.random.default_rng(0).normal(size=20)
    mean, error = program.mean_and_error(values.tolist())
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / math.sqrt(20))


def test_an_infinite_figure_is_shown_as_such():
    assert program.with_error([1.0, None]) == "not finite"
    assert program.with_error([]) == ""
    assert program.with_error([0.5], digits=1, factor=100.0) == "50.0"
    assert program.with_error([1.0, 3.0]) == "2.00 ± 1.00"


def test_small_means_are_shown_with_three_digits():
    assert program.decimals([0.00051234]) == 6
    assert program.decimals([3.4]) == 2
    assert program.decimals([-0.05]) == 4
    assert program.decimals([None]) == 2


def test_splits_are_counted_by_method():
    records = [{"set": "a", "method": "m", "split": i} for i in range(3)]
    records += [{"set": "b", "method": "m", "split": 0}]
    records += [{"set": "a", "method": "n", "split": 0}]
    assert program.splits_line(records) == "Splits of each set: m 1–3, n 1."


def test_a_table_is_aligned():
    table = load("timing").markdown_table(
        ["set", "rmse"], [["a", "1.00"], ["bcde", "10.00"]]
    )
    assert table.splitlines() == [
        "| set  |  rmse |",
        "|------|------:|",
        "| a    |  1.00 |",
        "| bcde | 10.00 |",
    ]


def test_records_of_a_smoke_run_stay_out_of_the_folder(tmp_path, capsys):
    options = program.argument_parser("What it does.").parse_args(["--smoke"])

    def measure(measured):
        measured.measure({"method": "a"}, lambda: {"rmse": 1.0})

    program.run("benchmarks/some.py", options, measure, lambda records: "a report")
    printed = capsys.readouterr().out
    assert "of no use as results.\n\na report" in printed
    (path,) = re.findall("records: (.*)", printed)
    assert program.FOLDER not in program.Path(path).parents


def test_missing_data_end_the_program_with_a_sentence_alone(tmp_path, capsys):
    options = program.argument_parser("").parse_args(
        ["--output", str(tmp_path / "a.json")]
    )

    def measure(measured):
        measured.measure({"method": "a"}, lambda: {"rmse": 1.0})
        raise program.DataError("There is no set.")

    with pytest.raises(SystemExit, match=r"Error: There is no set\."):
        program.run("some.py", options, measure, lambda records: "a report")
    assert "a report" not in capsys.readouterr().out


def test_an_interrupted_run_keeps_and_reports_its_records(tmp_path, capsys):
    output = tmp_path / "a.json"
    options = program.argument_parser("").parse_args(["--output", str(output)])

    def measure(measured):
        measured.measure({"method": "a"}, lambda: {"rmse": 1.0})
        raise KeyboardInterrupt

    def report(measured):
        return f"{len(measured.records)} record"

    with pytest.raises(SystemExit) as end:
        program.run("some.py", options, measure, report)
    assert end.value.code == 128 + signal.SIGINT
    printed = capsys.readouterr()
    assert "1 record" in printed.out
    assert printed.err.startswith("Interrupted; the same command goes on.")
    assert output.exists()
