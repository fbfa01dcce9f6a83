"""A store in two directories, on one machine or on a disk that machines share."""

import contextlib
import errno
import shutil
import socket
import tempfile
from pathlib import Path

from service.shared.database import new_id
from service.shared.settings import Settings
from service.shared.store.store import STAGING, StoreError
from tfbbb.base.files import flush
from tfbbb.export.manifest import MANIFEST_PATH
from tfbbb.export.versions import next_version, version_number

_HIDDEN = "deleted"


class DirectoryStore:
    """The data directory and the models directory.

    Nothing is copied: a file is renamed to its place, on the same disk. Checkpoints
    stay in the scratch directory of their job.
    """

    is_directory = True

    def __init__(self, settings: Settings) -> None:
        self.models = settings.models
        self.url = str(settings.models)
        self._datasets = settings.data_dir / "datasets"
        self.datasets_url = str(self._datasets)
        self._identity = settings.data_dir.absolute() / "identity"
        self.place = f"{self._identity.parent} of {socket.gethostname()}"

    def identity(self) -> str:
        """Returns the content of the file `identity` in the data directory."""
        if not self._identity.exists():
            part = self._identity.with_name(f".identity.{new_id()}")
            part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_text(f"{new_id()}\n")
            # Another service may create it at the same time; a link replaces no file.
            with contextlib.suppress(FileExistsError):
                self._identity.hardlink_to(part)
            part.unlink()
            flush(self._identity.parent)
        return self._identity.read_text().strip()

    def check(self) -> None:
        """Raises `StoreError` unless models can be written."""
        try:
            with tempfile.TemporaryFile(dir=self.models):
                pass
        except OSError as error:
            raise StoreError(error.strerror or str(error), self.url) from None

    def ping(self) -> None:
        """Raises `StoreError` unless there is a models directory."""
        if not self.models.is_dir():
            raise StoreError("There is no models directory", self.url)

    def upload_dataset(self, file: Path, name: str) -> None:
        """Does nothing: a rename is quick."""

    def add_dataset(self, file: Path, name: str) -> None:
        """Renames a file to its place; then it survives a power failure."""
        self._datasets.mkdir(parents=True, exist_ok=True)
        file.replace(self._datasets / name)
        flush(self._datasets)

    def dataset(self, name: str) -> Path:
        """Returns the file of a dataset."""
        return self._datasets / name

    def dataset_names(self) -> list[str]:
        """Returns the names of the datasets."""
        return sorted(path.name for path in self._datasets.glob("*"))

    def remove_dataset(self, name: str) -> None:
        """Removes a dataset, if it exists."""
        (self._datasets / name).unlink(missing_ok=True)

    def save_checkpoints(self, job_id: str) -> None:
        """Does nothing: the next attempt has the same scratch directory."""

    def restore_checkpoints(self, job_id: str) -> None:
        """Does nothing: the next attempt has the same scratch directory."""

    def remove_checkpoints(self, job_id: str) -> None:
        """Does nothing: there are none outside the scratch directory."""

    def jobs_with_checkpoints(self) -> set[str]:
        """Returns none."""
        return set()

    def upload_version(self, staged: Path) -> None:
        """Does nothing: a rename is quick."""

    def add_version(self, staged: Path, name: str, at_least: int) -> int:
        """Renames a staged model to the next number."""
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

    def uploads(self) -> list[str]:
        """Returns none."""
        return []

    def remove_upload(self, name: str) -> None:
        """Does nothing: there are none."""

    def numbers(self, name: str) -> list[int]:
        """Returns the numbers of the versions of a model, in order."""
        found = map(version_number, (self.models / name).glob("*"))
        return sorted(number for number in found if number is not None)

    def manifest(self, name: str, number: int) -> bytes:
        """Returns the manifest of a version."""
        return (self.version(name, number) / MANIFEST_PATH).read_bytes()

    def version(self, name: str, number: int) -> Path:
        """Returns the directory of a version."""
        return self.models / name / str(number)

    def remove_copy(self, name: str, number: int) -> None:
        """Does nothing: there are no copies."""

    def hide_version(self, name: str, number: int) -> None:
        """Renames the directory of a version, if it exists."""
        hidden = self._hidden(name, number)
        hidden.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.version(name, number).rename(hidden)

    def hidden_versions(self) -> list[tuple[str, int]]:
        """Returns name and number of the versions whose removal is prepared."""
        found = []
        for path in self.models.glob(f"{STAGING}/{_HIDDEN}.*.*"):
            _, number, name = path.name.split(".", 2)
            found.append((name, int(number)))
        return found

    def restore_version(self, name: str, number: int) -> None:
        """Renames the directory of a hidden version back."""
        self._hidden(name, number).rename(self.version(name, number))

    def remove_version(self, name: str, number: int) -> None:
        """Removes a hidden version."""
        shutil.rmtree(self._hidden(name, number), ignore_errors=True)

    def _hidden(self, name: str, number: int) -> Path:
        return self.models / STAGING / f"{_HIDDEN}.{number}.{name}"
