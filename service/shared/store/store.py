"""The store in two directories, and what every store does."""

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from service.shared.database import new_id
from service.shared.settings import Settings
from tfbbb.base.files import flush
from tfbbb.export.manifest import MANIFEST_PATH
from tfbbb.export.versions import next_version, version_number

# Directory beside the models, for models that are being written or deleted.
STAGING = ".staging"


class StoreError(OSError):
    """The store does not answer, or refuses; `strerror` is a sentence for the user."""

    def __init__(self, sentence: str, url: str) -> None:
        super().__init__(errno.EIO, sentence, url)


class StoreOutageError(StoreError):
    """The store does not answer now, but may later."""


class Store:
    """Datasets, checkpoints and versions of models, shared by all machines.

    What is in a store is complete and never changes. The caller orders changes of one
    dataset, job, version or model by a lock in the database. This store is the data
    directory and the models directory: checkpoints stay in the scratch directory of
    their job, and what is about copies does nothing. Every method may raise an
    `OSError`; one that knows the reason raises `StoreError`.
    """

    # Whether `models` is the store, also of versions that somebody copied there.
    is_directory = True

    def __init__(self, settings: Settings) -> None:
        # `NAME/VERSION` on this machine: the versions, or verified copies of them.
        self.models = settings.models
        # Where models and datasets are, in messages.
        self.url = str(settings.models)
        self._datasets = settings.data_dir / "datasets"
        self.datasets_url = str(self._datasets)

    def check(self) -> None:
        """Raises `StoreError` unless the store answers and may be written."""
        try:
            with tempfile.TemporaryFile(dir=self.models):
                pass
        except OSError as error:
            raise StoreError(error.strerror or str(error), self.url) from None

    def ping(self) -> None:
        """Raises `StoreError` unless the store answers."""
        if not self.models.is_dir():
            raise StoreError("There is no models directory", self.url)

    def upload_dataset(self, file: Path, name: str) -> None:
        """Does the slow part of `add_dataset`, before the caller takes a lock."""

    def add_dataset(self, file: Path, name: str) -> None:
        """Moves a complete file on the disk of the data directory into the store."""
        self._datasets.mkdir(parents=True, exist_ok=True)
        file.replace(self._datasets / name)
        # Then it survives a power failure.
        flush(self._datasets)

    def dataset(self, name: str) -> Path:
        """Returns a dataset as a file of this machine; the name has its SHA-256."""
        return self._datasets / name

    def dataset_names(self) -> list[str]:
        """Returns the names of the datasets."""
        return sorted(path.name for path in self._datasets.glob("[!.]*"))

    def remove_dataset(self, name: str) -> None:
        """Removes a dataset, if it exists."""
        (self._datasets / name).unlink(missing_ok=True)

    def save_checkpoints(self, job_id: str) -> None:
        """Stores the checkpoints in the scratch directory of a job."""

    def restore_checkpoints(self, job_id: str) -> None:
        """Puts stored checkpoints of a job into its scratch directory."""

    def remove_checkpoints(self, job_id: str) -> None:
        """Removes the stored checkpoints of a job."""

    def jobs_with_checkpoints(self) -> set[str]:
        """Returns the ids of jobs with checkpoints outside their scratch directory."""
        return set()

    def upload_version(self, staged: Path) -> None:
        """Does the slow part of `add_version`, before the caller takes a lock."""

    def add_version(self, staged: Path, name: str, at_least: int) -> int:
        """Makes a staged model a version, atomically; returns its number."""
        root = self.models / name
        root.mkdir(parents=True, exist_ok=True)
        number = at_least - 1
        while True:
            number = max(number + 1, int(next_version(root).name))
            try:
                staged.rename(root / str(number))
            except OSError as error:
                # Another process has taken the number meanwhile.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                flush(root)
                flush(self.models)
                return number

    def remove_uploads(self, has_ended: Callable[[str], bool]) -> None:
        """Removes uploaded staged models whose attempts ended without a version."""

    def numbers(self, name: str) -> list[int]:
        """Returns the numbers of the versions of a model, in order."""
        found = map(version_number, (self.models / name).glob("*"))
        return sorted(number for number in found if number is not None)

    def manifest(self, name: str, number: int) -> bytes:
        """Returns the manifest of a version."""
        return (self.version(name, number) / MANIFEST_PATH).read_bytes()

    def version(self, name: str, number: int) -> Path:
        """Returns the directory of a version on this machine."""
        return self.models / name / str(number)

    def remove_copy(self, name: str, number: int) -> None:
        """Removes this machine's copy of a version, if it has one."""

    def remove_version(self, name: str, number: int) -> None:
        """Removes a version, in one step for those who look for it."""
        # Workers remove what is left here.
        removed = self.models / STAGING / f"{new_id()}.0"
        removed.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.version(name, number).rename(removed)
        shutil.rmtree(removed, ignore_errors=True)
