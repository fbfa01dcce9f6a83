import os
import subprocess
import sys

import pytest

from tfbbb import __version__

HEAVY = ["tensorflow", "keras", "pyarrow", "pandas", "matplotlib", "sklearn", "fastapi"]


@pytest.mark.parametrize(
    "command",
    [
        *([], ["train"], ["predict"], ["serve"], ["demo"], ["benchmark"]),
        *(["remote"], ["remote", "train"]),
    ],
)
def test_help_imports_no_slow_module(command):
    program = f"""
import sys
from tfbbb.__main__ import main
sys.argv = ["tfbbb", *{command!r}, "--help"]
try:
    main()
finally:
    print("imported:", [name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert "Usage: tfbbb" in done.stdout
    assert "…" not in done.stdout, "an option is cut off"
    assert "imported: []" in done.stdout


def test_version_prints_the_version_of_the_package(tfbbb):
    assert tfbbb("--version").stdout == f"tfbbb {__version__}\n"


def test_the_package_runs_with_python_m():
    done = subprocess.run(
        [sys.executable, "-m", "tfbbb", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(
        name in done.stdout for name in ("train", "predict", "serve", "remote", "demo")
    )
