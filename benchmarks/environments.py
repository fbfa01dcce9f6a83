"""Other libraries, each in a virtual environment of its own."""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from records import SkippedError

PROGRAMS = Path(__file__).resolve().parent / "peers"
_ERROR_LINES = 3
_TRACEBACK = "Traceback (most recent call last):"
_MOST_SECONDS = 3600.0


@dataclass(frozen=True)
class Peer:
    """A library to compare with.

    Attributes:
        program: Name of the program in `peers/` that fits and predicts.
        requirements: What pip installs into its environment.
        needs_tensorflow: Whether its environment has the TensorFlow of this one too:
            these very files where they work beside the requirements, else a copy.
    """

    program: str
    requirements: tuple[str, ...]
    needs_tensorflow: bool = False

    def run(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Runs the program in its environment; returns its arrays.

        The program reads the arguments from one npz file and writes another.
        """
        python = self.environment()
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder, "input.npz"), Path(folder, "output.npz")
            np.savez(given, **inputs)
            program = PROGRAMS / f"{self.program}.py"
            _run([python, program, given, answer], f"{self.program} failed")
            with np.load(answer, allow_pickle=False) as arrays:
                return dict(arrays)

    def environment(self) -> Path:
        """Returns the Python of the environment, which is made at the first call."""
        key = " ".join([sys.version, *self.requirements])
        if self.needs_tensorflow:
            key += f" tensorflow {importlib.metadata.version('tensorflow')}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        folder = cache_folder() / f"{self.program}-{digest}"
        python = folder / "bin" / "python"
        complete = folder / "complete"
        with _lock(folder.parent):
            if not complete.exists():
                what = f"cannot install {' '.join(self.requirements)}"
                print(f"installs {' '.join(self.requirements)}", flush=True)
                base = getattr(sys, "_base_executable", sys.executable)
                _run([base, "-m", "venv", "--clear", folder], what)
                pip = [python, "-m", "pip", "install", "--quiet", *self.requirements]
                _run(pip, what)
                if self.needs_tensorflow:
                    _add_tensorflow(python)
                complete.touch()
        return python


def _add_tensorflow(python: Path) -> None:
    """Gives an environment the version of TensorFlow of this one."""
    version = importlib.metadata.version("tensorflow")
    found = importlib.util.find_spec("tensorflow")
    assert found is not None
    assert found.origin is not None
    (site_packages,) = python.parents[1].glob("lib/python*/site-packages")
    link = site_packages / "tensorflow_of_tfbbb.pth"
    # Packages of the environment itself come first.
    link.write_text(f"{Path(found.origin).parents[1]}\n")
    check = f"import tensorflow as tf; assert tf.__version__ == {version!r}"
    try:
        _run([python, "-c", check], "TensorFlow does not run")
    except SkippedError:
        link.unlink()
        requirement = f"tensorflow=={version}"
        pip = [python, "-m", "pip", "install", "--quiet", requirement]
        _run(pip, f"cannot install {requirement}")


def cache_folder() -> Path:
    """Returns the folder of what the benchmarks install and download."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tfbbb" / "benchmarks"


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _run(command: list[Any], what: str) -> None:
    """Runs a command."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment_variables(),
            timeout=_MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        hours = f"{_MOST_SECONDS / 3600:g}"
        raise SkippedError(f"{what}: it took longer than {hours} h") from None
    if done.returncode:
        # The indented lines of a traceback name places of this machine.
        said = done.stdout.rpartition(_TRACEBACK)[2].splitlines()
        told = [line for line in said if not line.startswith(" ")]
        lines = [line.strip() for line in told or said if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines
        reason = " ".join(errors[-_ERROR_LINES:]) or f"exit code {done.returncode}"
        raise SkippedError(f"{what}: {reason}")


def environment_variables() -> Mapping[str, str]:
    """Returns the variables of this process without those of its own packages."""
    own = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in own}
