import subprocess
import sys

from tfbbb.cli.benchmark import describe_program, find_programs


def test_help_names_every_benchmark(tfbbb):
    printed = tfbbb("benchmark", "--help").stdout
    programs = find_programs()
    assert programs
    for name, path in programs.items():
        assert name in printed
        assert describe_program(path).split()[0] in printed


def test_an_unknown_benchmark_is_refused_with_the_names(tfbbb):
    result = tfbbb("benchmark", "nothing")
    assert result.exit_code == 1
    assert ", ".join(find_programs()) in result.stderr
    assert "Received: 'nothing'" in result.stderr


def test_options_go_to_the_program():
    command = [sys.executable, "-m", "tfbbb", "benchmark", "uci", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "usage: tfbbb benchmark uci" in done.stdout
    assert "--splits" in done.stdout
