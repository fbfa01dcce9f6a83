import re
import signal

import pytest

from tests.benchmarks.programs import load

program = load("program")


def measure(measured, end=None):
    measured.measure({"method": "a"}, lambda: {"rmse": 1.0})
    if end is not None:
        raise end


def run(arguments, end=None):
    options = program.argument_parser("What it does.").parse_args(arguments)
    program.run(
        "benchmarks/some.py",
        options,
        lambda measured, options: measure(measured, end),
        lambda measured: f"{len(measured.records)} record",
    )


def test_records_of_a_smoke_run_stay_out_of_the_folder(capsys):
    run(["--smoke"])
    printed = capsys.readouterr().out
    assert "of no use as results.\n\n1 record" in printed
    (path,) = re.findall("records: (.*)", printed)
    assert program.FOLDER not in program.Path(path).parents


def test_missing_data_end_the_program_with_a_sentence_alone(tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"Error: There is no set\."):
        run(["--output", f"{tmp_path}/a.json"], program.DataError("There is no set."))
    assert "1 record" not in capsys.readouterr().out


def test_an_interrupted_run_keeps_and_reports_its_records(tmp_path, capsys):
    output = tmp_path / "a.json"
    with pytest.raises(SystemExit) as end:
        run(["--output", str(output)], KeyboardInterrupt())
    assert end.value.code == 128 + signal.SIGINT
    printed = capsys.readouterr()
    assert "1 record" in printed.out
    assert printed.err.startswith("Interrupted; the same command goes on.")
    assert output.exists()
