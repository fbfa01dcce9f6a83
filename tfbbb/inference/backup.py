"""The finished parts of a run, kept so that an interrupted run continues."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Structure

_RUN = "run.npz"
_UNFINISHED = ".unfinished"


class Backup:
    """Keeps the finished parts of a run in a directory.

    A run is a sequence of parts. Each part is a pure function of the parts before it,
    so a run that starts again reads the parts that are done, and has the same result as
    a run without interruption. Every file is complete: it is renamed to its place after
    it has been flushed to disk.

    Args:
        directory: The directory; None keeps nothing.
        identity: What the parts depend on: the method as a text, and arrays such as the
            rows.
        log_density: Log densities of some states, by which a run recognises its model.

    Raises:
        ValueError: The directory has other files, or parts of another run.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        identity: Iterable[str | Structure],
        log_density: ArrayLike,
    ):
        self._directory = None if directory is None else Path(directory)
        self._count = 0
        if self._directory is None:
            return
        digest = _digest(identity)
        path = self._directory / _RUN
        if path.exists():
            with np.load(path, allow_pickle=False) as run:
                # Sums over rows differ in the last bits from run to run.
                is_same = run["digest"] == digest and np.allclose(
                    run["log_density"], log_density, rtol=1e-4
                )
            if not is_same:
                raise ValueError(
                    "`backup_dir` has a run of another model, other rows or other "
                    "arguments: give another directory, or delete this one. "
                    f"Received: backup_dir={str(directory)!r}"
                )
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        if set(self._directory.iterdir()) - {path.with_suffix(_UNFINISHED)}:
            raise ValueError(
                "`backup_dir` has files that are not a backup: give a new or an empty "
                f"directory. Received: backup_dir={str(directory)!r}"
            )
        _write(path, digest=digest, log_density=np.asarray(log_density))

    def part(self, compute: Callable[[], Structure], like: Structure) -> Any:
        """Returns the result of the next part, computed unless it is kept."""
        if self._directory is None:
            return compute()
        path = self._directory / f"part-{self._count:06d}.npz"
        self._count += 1
        if path.exists():
            with np.load(path, allow_pickle=False) as file:
                arrays = [file[str(i)] for i in range(len(file.files))]
            return tf.nest.pack_sequence_as(like, [tf.constant(x) for x in arrays])
        result = compute()
        arrays = [tensor.numpy() for tensor in tf.nest.flatten(result)]
        _write(path, **{str(i): array for i, array in enumerate(arrays)})
        return result

    def finish(self) -> None:
        """Deletes the directory: the run is over."""
        if self._directory is not None:
            shutil.rmtree(self._directory)


def _digest(identity: Iterable[str | Structure]) -> str:
    found = hashlib.sha256()
    for thing in identity:
        for value in tf.nest.flatten(thing):
            found.update(np.asarray(value).tobytes())
            found.update(b"\0")
    return found.hexdigest()


def _write(path: Path, **arrays: ArrayLike) -> None:
    unfinished = path.with_suffix(_UNFINISHED)
    with unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
