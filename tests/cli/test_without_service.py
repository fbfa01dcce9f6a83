"""The kit and its local commands where the extra `service` is not installed."""

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.cli.commands import run_commands
from tfbbb.cli import errors

ROOT = Path(__file__).parents[2]

WITHOUT_EXTRA = f"""
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name in {sorted(errors._SERVICE_PACKAGES)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, NotInstalled())
"""


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


def test_help_needs_no_service_and_its_commands_say_what_to_install():
    helped = (["--help"], ["keys", "--help"], ["remote", "train", "--help"])
    refused = (["serve"], ["keys", "list"], ["backup", "/nowhere"])
    done = run_commands(*helped, *refused, first=WITHOUT_EXTRA)
    assert done.returncode == 1
    assert done.stdout.count("Usage: tfbbb") == 3
    said = done.stderr.splitlines()
    assert len(said) == 3
    for line in said:
        assert re.fullmatch(
            r"Error: This command needs the packages of the service; install them with "
            r"`pip install 'tfbbb\[service\]'`. Received: No module named '\w+'.",
            line,
        )


@pytest.mark.slow
def test_a_table_is_trained_on_and_predicted_without_the_service(tmp_path):
    table = tmp_path / "table.csv"
    rows = "".join(f"{x / 50},{x / 25}\n" for x in range(100))
    table.write_text(f"x,y\n{rows}")
    model, quick = str(tmp_path / "model"), str(Path(__file__).with_name("quick.json"))
    done = run_commands(
        ["train", table, "--target=y", "--spec", quick, "--output", model],
        ["predict", model, table],
        first=WITHOUT_EXTRA,
    )
    assert done.returncode == 0, done.stderr
    assert "mean,std," in done.stdout
