"""The programs of `benchmarks/`, as their tests load and run them."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    """Imports a module of `benchmarks/`."""
    with _first_in_path():
        return importlib.import_module(name)


def run_smoke(name: str, data: Path, output: Path, *arguments: str) -> Any:
    """Runs the smoke form of a benchmark in this process; returns its records."""
    options = ["--smoke", "--data", str(data), "--output", str(output), *arguments]
    with _first_in_path():
        importlib.import_module(name).main(options)
        return importlib.import_module("records").RecordFile(output)


@contextmanager
def _first_in_path() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))
