"""Checkpoints: the whole state of a training in one atomic file."""

import contextlib
import hashlib
import io
import json
import os
import time
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np

from tfbbb.base.files import disk_faults_named, flush
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Config, Options
from tfbbb.model.bayesian_model import BayesianModel

_HEADER = "header"
_PREFIX = "checkpoint-"
_UNFINISHED = "unfinished-checkpoint"


class Checkpoints:
    """The latest checkpoint of a training, in a directory."""

    def __init__(self, directory: Path, seconds: float, fingerprint: str):
        self._directory = directory
        self._seconds = positive_number("checkpoint_seconds", seconds)
        self._fingerprint = fingerprint
        self._written_at = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return time.monotonic() >= self._written_at + self._seconds

    def write(self, step: int, state: Config, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes a checkpoint; a complete one exists whenever the machine stops."""
        header = json.dumps([step, self._fingerprint, state])
        entries: Options = {_HEADER: np.array(header), **arrays}
        content = io.BytesIO()
        np.savez(content, **entries)
        unfinished = self._directory / _UNFINISHED
        written = self._directory / f"{_PREFIX}{step:012d}"
        with disk_faults_named(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            try:
                with unfinished.open("wb") as file:
                    file.write(content.getvalue())
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(written)
            except OSError:
                # Free the space on a full disk.
                with contextlib.suppress(OSError):
                    unfinished.unlink()
                raise
            flush(self._directory)
        for path in self._newest_first():
            if path != written:
                path.unlink()
        self._written_at = time.monotonic()

    def read(self) -> tuple[int, Config, Mapping[str, np.ndarray]] | None:
        """Returns step, state and arrays of the latest checkpoint of this training."""
        for path in self._newest_first():
            try:
                with np.load(path) as file:
                    arrays = dict(file)
                step, fingerprint, state = json.loads(str(arrays.pop(_HEADER)))
            except (zipfile.BadZipFile, EOFError, KeyError, ValueError) as error:
                warnings.warn(f"{path} is damaged and ignored: {error}", stacklevel=3)
                continue
            if fingerprint == self._fingerprint:
                return step, state, arrays
            warnings.warn(
                f"{path} is ignored: it belongs to a training with other rows, another "
                "spec or another version of tfbbb",
                stacklevel=3,
            )
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self._directory.glob(f"{_PREFIX}*"), reverse=True)


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns every variable that training changes, by names that do not change."""
    parts = {"model": model.variables, "optimizer": model.optimizer.variables}
    return {
        f"{part}/{number}": variable
        for part, variables in parts.items()
        for number, variable in enumerate({id(v): v for v in variables}.values())
    }


def named_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns the values of `named_variables`."""
    return {name: variable.numpy() for name, variable in named_variables(model).items()}


def assign(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Assigns values that `named_arrays` returned for an equal model."""
    for name, variable in named_variables(model).items():
        variable.assign(arrays[name])


def training_fingerprint(model: BayesianModel, **others: object) -> str:
    """Returns a digest that differs if the result of a training would differ."""
    variables = [
        (name, variable.dtype, tuple(variable.shape))
        for name, variable in named_variables(model).items()
    ]
    text = json.dumps({"variables": variables, **others}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
