"""Checkpoints: the whole state of a training in one atomic file."""

import contextlib
import hashlib
import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfbbb.base.files import disk_faults_named, flush
from tfbbb.base.numbers import positive_number
from tfbbb.base.types import Config

# The last digit is the version of the format.
_MAGIC = b"tfbbb checkpoint 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_PREFIX = "checkpoint-"
_UNFINISHED = "unfinished-checkpoint"
# The previous checkpoint serves if the disk has damaged the latest.
_KEPT = 2


class CheckpointError(ValueError):
    """A checkpoint belongs to another training."""


class DamagedCheckpointError(ValueError):
    """A file is not a complete checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training between two steps.

    Attributes:
        step: Number of steps taken.
        fingerprint: Digest of the spec and the data of the training.
        state: State other than arrays, as plain JSON values.
        arrays: All variables by name.
    """

    step: int
    fingerprint: str
    state: Config
    arrays: Mapping[str, np.ndarray]

    def to_bytes(self) -> bytes:
        """Returns the checkpoint as bytes.

        The format is: a line that names the format, the length of the JSON header in
        eight bytes, the header, the arrays (little-endian, row-major), and the SHA-256
        of everything before it.
        """
        arrays = {name: np.asarray(array) for name, array in self.arrays.items()}
        header = json.dumps(
            {
                "step": self.step,
                "fingerprint": self.fingerprint,
                "state": self.state,
                "arrays": [
                    {"name": name, "dtype": array.dtype.str, "shape": array.shape}
                    for name, array in arrays.items()
                ],
            }
        ).encode()
        content = b"".join(
            [
                _MAGIC,
                len(header).to_bytes(8, "little"),
                header,
                *(array.tobytes() for array in arrays.values()),
            ]
        )
        return content + hashlib.sha256(content).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Checkpoint":
        """Creates a checkpoint from the result of `to_bytes`."""
        content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if not content.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
            raise DamagedCheckpointError(
                "The checkpoint is damaged: its digest has changed since it was "
                f"written. Received: {len(data)} bytes"
            )
        start = len(_MAGIC) + 8
        place = start + int.from_bytes(content[len(_MAGIC) : start], "little")
        header = json.loads(content[start:place])
        arrays = {}
        for entry in header["arrays"]:
            dtype = np.dtype(entry["dtype"])
            count = int(np.prod(entry["shape"], dtype=int))
            array = np.frombuffer(content, dtype, count, offset=place)
            arrays[entry["name"]] = array.reshape(entry["shape"])
            place += array.nbytes
        return cls(header["step"], header["fingerprint"], header["state"], arrays)


class Checkpoints:
    """The latest two checkpoints of a training, in a directory.

    Args:
        directory: Directory of the checkpoints; created if missing.
        seconds: Time between checkpoints.
        fingerprint: Fingerprint of the training.
    """

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
        """Writes a checkpoint; the arguments are attributes of `Checkpoint`.

        Writes a temporary file, flushes it to disk and renames it, so that a complete
        checkpoint exists whenever the process or the machine stops.
        """
        content = Checkpoint(step, self._fingerprint, state, arrays).to_bytes()
        unfinished = self._directory / _UNFINISHED
        written = self._directory / f"{_PREFIX}{step:012d}"
        with disk_faults_named(self._directory, "the checkpoint", lambda: len(content)):
            self._directory.mkdir(parents=True, exist_ok=True)
            try:
                with unfinished.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(written)
            except OSError:
                # Free the space on a full disk.
                with contextlib.suppress(OSError):
                    unfinished.unlink()
                raise
            flush(self._directory)
        found = self._newest_first()
        # Checkpoints of later steps are damaged, or training would have used them.
        kept = found[found.index(written) :][:_KEPT]
        for path in found:
            if path not in kept:
                path.unlink()
        self._written_at = time.monotonic()

    def read(self) -> Checkpoint | None:
        """Returns the latest complete checkpoint, or None."""
        for path in self._newest_first():
            try:
                checkpoint = Checkpoint.from_bytes(path.read_bytes())
            except DamagedCheckpointError as error:
                warnings.warn(f"{path} is ignored. {error}", stacklevel=3)
                continue
            if checkpoint.fingerprint != self._fingerprint:
                raise CheckpointError(
                    "The checkpoint belongs to another training, with other rows or "
                    "another spec; train in an empty directory. "
                    f"Received: checkpoint_directory={str(self._directory)!r}"
                )
            return checkpoint
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self._directory.glob(f"{_PREFIX}*"), reverse=True)
