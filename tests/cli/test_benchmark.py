import subprocess
import sys

import pytest

from tfbbb.cli.benchmark import describe_program, find_programs

PROGRAM = '''"""A benchmark."""
import sys
def main(arguments=None):
    print("given", sys.argv[1:])
    sys.exit(3)
main()
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder in place of that of the programs."""
    # The module's name is that of its command in `tfbbb.cli`, too.
    monkeypatch.setitem(find_programs.__globals__, "_FOLDER", tmp_path)
    return tmp_path


def test_help_names_every_benchmark(tfbbb):
    printed = tfbbb("benchmark", "--help").stdout
    programs = find_programs()
    assert programs
    for name, path in programs.items():
        assert name in printed
        assert describe_program(path).split()[0] in printed


@pytest.mark.parametrize("name", find_programs())
def test_a_benchmark_runs_as_a_script(name):
    text = find_programs()[name].read_text("utf-8")
    assert text.endswith('if __name__ == "__main__":\n    main()\n')


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


def test_a_benchmark_gets_the_options_after_its_name(tfbbb, folder, capfd):
    (folder / "some.py").write_text(PROGRAM)
    (folder / "program.py").write_text("def main():\n    pass\n")
    assert list(find_programs()) == ["some"]
    result = tfbbb("benchmark", "some", "--data", "x", "-h")
    assert result.exit_code == 3
    assert capfd.readouterr().out == "given ['--data', 'x', '-h']\n"


def test_an_installation_without_benchmarks_says_so(tfbbb, folder):
    # A folder of another package.
    (folder / "some.py").write_text(PROGRAM)
    result = tfbbb("benchmark", "uci")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: Benchmarks run from a clone of the repository, which this installation "
        "is not. Received: 'uci'\n"
    )
    assert tfbbb("benchmark", "--help").exit_code == 0
