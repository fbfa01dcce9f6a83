"""The programs of `benchmarks/`, as their tests load and run them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    """Imports a module of `benchmarks/`."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


def run_smoke(name: str, data: Path, output: Path, *arguments: str) -> Any:
    """Runs the smoke form of a benchmark in this process; returns its records."""
    options = ["--smoke", "--data", str(data), "--output", str(output), *arguments]
    load(name).main(options)
    return load("records").RecordFile(output)
