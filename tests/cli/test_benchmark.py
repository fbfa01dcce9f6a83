import subprocess
import sys
import tomllib

import pytest

from tfbbb.cli.benchmark import describe_program, find_programs

PROGRAM = '''"""A benchmark."""
import sys
def main(arguments=None):
    print("given", sys.argv[1:])
    sys.exit(3)
main()
'''


# The module's name is that of its command in `tfbbb.cli`, too.
FOLDERS = find_programs.__globals__["_FOLDERS"]


@pytest.fixture
def set_folders(monkeypatch):
    """Sets the folders of the programs."""
    names = find_programs.__globals__
    return lambda *folders: monkeypatch.setitem(names, "_FOLDERS", folders)


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


def test_programs_of_an_installed_package_come_first(
    tfbbb, tmp_path, set_folders, capfd
):
    folder = tmp_path / "benchmark_programs"
    folder.mkdir()
    (folder / "some.py").write_text(PROGRAM)
    (folder / "shared.py").write_text("def main():\n    pass\n")
    set_folders(folder, *FOLDERS)
    assert list(find_programs()) == ["some"]
    result = tfbbb("benchmark", "some", "--data", "x", "-h")
    assert result.exit_code == 3
    assert capfd.readouterr().out == "given ['--data', 'x', '-h']\n"


def test_an_installation_without_benchmarks_says_so(tfbbb, tmp_path, set_folders):
    set_folders(tmp_path / "nothing")
    result = tfbbb("benchmark", "uci")
    assert result.exit_code == 1
    assert "This installation has no benchmarks" in result.stderr
    assert tfbbb("benchmark", "--help").exit_code == 0


def test_a_wheel_holds_the_programs_where_they_are_looked_for():
    installed, checkout = FOLDERS
    root = checkout.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert checkout.name in wheel["only-include"]
    assert wheel["sources"] == {
        checkout.name: installed.relative_to(root).as_posix(),
    }
