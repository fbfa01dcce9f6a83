"""The kit and its local commands where the extra `service` is not installed."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tfbbb.cli import errors

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, NotInstalled())
from tfbbb.__main__ import main
for arguments in {commands!r}:
    sys.argv = ["tfbbb", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def run(*commands):
    """Runs commands, until one fails, in one process without the extra."""
    program = PROGRAM.format(
        missing=sorted(errors._SERVICE_PACKAGES), commands=commands
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "80"},
        check=False,
    )


def test_the_list_of_packages_is_that_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["service"]
    # Starlette comes with FastAPI.
    distributions = {re.split(r"[^\w-]", line)[0] for line in extra} | {"starlette"}
    packages = {
        package
        for package, names in packages_distributions().items()
        if any(name.lower().replace("_", "-") in distributions for name in names)
    }
    assert packages == errors._SERVICE_PACKAGES


@pytest.mark.parametrize("command", [[], ["keys"], ["remote", "train"]])
def test_help_needs_no_service(command):
    done = run([*command, "--help"])
    assert "Usage: tfbbb" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    "command", [["serve"], ["keys", "list"], ["backup", "/nowhere"]]
)
def test_a_command_of_the_service_says_what_to_install(command):
    done = run(command)
    assert done.returncode == 1
    assert re.fullmatch(
        r"Error: This command needs the packages of the service; install them with "
        r"`pip install 'tfbbb\[service\]'`. Received: No module named '\w+'.\n",
        done.stderr,
    )


@pytest.mark.slow
def test_a_table_is_trained_on_and_predicted_without_the_service(tmp_path):
    table = tmp_path / "table.csv"
    rows = "".join(f"{x / 50},{x / 25}\n" for x in range(100))
    table.write_text(f"x,y\n{rows}")
    model, quick = str(tmp_path / "model"), str(Path(__file__).with_name("quick.json"))
    done = run(
        ["train", str(table), "--target=y", "--spec", quick, "--output", model],
        ["predict", model, str(table)],
    )
    assert done.returncode == 0, done.stderr
    assert "mean,std," in done.stdout
