import re
import signal

import pytest

from tests.benchmarks.programs import load

program = load("program")


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
