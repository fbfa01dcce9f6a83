"""What every store does."""

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

# Directory beside the models, for models that are being written or deleted.
STAGING = ".staging"


class StoreError(OSError):
    """The store does not answer, or refuses; `strerror` is a sentence for the user."""

    def __init__(self, sentence: str, url: str) -> None:
        super().__init__(errno.EIO, sentence, url)


class StoreOutageError(StoreError):
    """The store does not answer now, but may later."""


class Store(Protocol):
    """Datasets, checkpoints and versions of models, shared by all machines.

    Whatever is in a store is complete and never changes. A version is *added* in one
    atomic step, under the next free number of its model. The caller orders changes of
    one dataset, job, version or model by a lock in the database.

    Every method may raise an `OSError`; one that knows the reason raises `StoreError`.

    Attributes:
        url: Where the models are, in messages.
        datasets_url: Where the datasets are, in messages.
        place: Where all of it is, in messages that services elsewhere show too.
        models: A directory of this machine with `NAME/VERSION`, in TensorFlow Serving's
            layout: the versions themselves, or verified copies of them.
        is_directory: Whether `models` is the store, so that a version that somebody
            copied there is in the store.
    """

    url: str
    datasets_url: str
    place: str
    models: Path
    is_directory: bool

    def identity(self) -> str:
        """Returns the id of the store, which is created once."""

    def check(self) -> None:
        """Raises `StoreError` unless the store answers and may be written."""

    def ping(self) -> None:
        """Raises `StoreError` unless the store answers."""

    def upload_dataset(self, file: Path, name: str) -> None:
        """Does the slow part of `add_dataset`, before the caller takes a lock."""

    def add_dataset(self, file: Path, name: str) -> None:
        """Moves a complete file on the disk of the data directory into the store."""

    def dataset(self, name: str) -> Path:
        """Returns a dataset as a file of this machine; the name has its SHA-256."""

    def dataset_names(self) -> list[str]:
        """Returns the names of the datasets."""

    def remove_dataset(self, name: str) -> None:
        """Removes a dataset, if it exists."""

    def save_checkpoints(self, job_id: str) -> None:
        """Stores the checkpoints in the scratch directory of a job."""

    def restore_checkpoints(self, job_id: str) -> None:
        """Puts stored checkpoints of a job into its scratch directory."""

    def remove_checkpoints(self, job_id: str) -> None:
        """Removes the stored checkpoints of a job."""

    def jobs_with_checkpoints(self) -> set[str]:
        """Returns the ids of jobs with checkpoints outside their scratch directory."""

    def upload_version(self, staged: Path) -> None:
        """Does the slow part of `add_version`, before the caller takes a lock."""

    def add_version(self, staged: Path, name: str, at_least: int) -> int:
        """Makes a staged model a version, atomically; returns its number."""

    def uploads(self) -> Iterable[str]:
        """Returns the names of uploaded staged models that may not be versions."""

    def remove_upload(self, name: str) -> None:
        """Removes an uploaded staged model, unless it is a version."""

    def numbers(self, name: str) -> list[int]:
        """Returns the numbers of the versions of a model, in order."""

    def manifest(self, name: str, number: int) -> bytes:
        """Returns the manifest of a version."""

    def version(self, name: str, number: int) -> Path:
        """Returns the directory of a version on this machine."""

    def remove_copy(self, name: str, number: int) -> None:
        """Removes this machine's copy of a version, if it has one."""

    def hide_version(self, name: str, number: int) -> None:
        """Prepares the removal of a version, so that a crash cannot lose it."""

    def hidden_versions(self) -> list[tuple[str, int]]:
        """Returns name and number of the versions whose removal is prepared."""

    def restore_version(self, name: str, number: int) -> None:
        """Undoes `hide_version`."""

    def remove_version(self, name: str, number: int) -> None:
        """Removes a hidden version."""
