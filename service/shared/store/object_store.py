"""A store in an object storage, such as S3, through fsspec.

Its objects, under the URL of the store:

    datasets/SHA256.FORMAT          a table
    checkpoints/JOB_ID/...          checkpoints of a job that has not ended
    versions/JOB_ID.ATTEMPT/...     the files of a model that an attempt exported
    models/NAME/VERSION             the *marker* of a version: JSON that names its files
    deleting/NAME/VERSION           the version is being deleted

An attempt uploads its files under a key of its own, so no two attempts write the same
object. A version exists from the moment its marker does. The caller locks the numbers
of a model in the database, so that a number has one version for ever.
"""

import hashlib
import importlib.util
import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from service.shared.database import new_id
from service.shared.files import JobFiles
from service.shared.settings import Settings
from service.shared.store.store import Store, StoreError, StoreOutageError
from tfbbb.base.files import atomic_directory
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError
from tfbbb.export.versions import version_number

logger = logging.getLogger(__name__)

# The package that fsspec needs for a scheme, and how to install it.
_PACKAGES = {
    "s3": ("s3fs", "pip install 'tfbbb[s3]'"),
    "gs": ("gcsfs", "pip install gcsfs"),
    "az": ("adlfs", "pip install adlfs"),
}
# Other processes may also prepare removals; each looks for them now and then.
_SECONDS_BETWEEN_LOOKS = 60.0
_CHECKPOINT = "checkpoint-*"


class _Marker(NamedTuple):
    """The content of a version's marker: the key of its files under `versions/`."""

    files: str
    manifest_sha256: str


class ObjectStore(Store):
    """An object storage. Each machine keeps copies of the objects that it reads.

    The copies of datasets are in the data directory, and those of versions in
    `DATA_DIR/models`.
    """

    is_directory = False

    def __init__(self, settings: Settings) -> None:
        assert settings.store is not None
        super().__init__(settings)
        self.url = self.datasets_url = settings.store.rstrip("/")
        self.models = settings.data_dir / "models"
        self._settings = settings
        scheme, _, self._root = self.url.partition("://")
        package, install = _PACKAGES[scheme]
        if importlib.util.find_spec(package) is None:
            raise StoreError(
                f"A store at {scheme}:// needs the package `{package}`: {install}",
                self.url,
            )
        import fsspec

        # Other processes add and remove objects, so no listing may be cached.
        self._storage: Any = fsspec.filesystem(scheme, use_listings_cache=False)
        self._committed: dict[str, _Marker] = {}
        self._verified: set[Path] = set()
        self._looked_at = float("-inf")

    def check(self) -> None:
        """Raises `StoreError` unless objects can be written, read and deleted."""
        key, content = self._key("check", new_id()), new_id().encode()
        with self._faults("written and read"):
            self._storage.pipe_file(key, content)
            found = self._storage.cat_file(key)
            self._storage.rm_file(key)
        if found != content:
            raise StoreError("It did not return the bytes that it was given", self.url)

    def ping(self) -> None:
        """Raises `StoreError` unless the storage lists objects."""
        self._find(self._key("check"))

    # Datasets

    def upload_dataset(self, file: Path, name: str) -> None:
        """Uploads a file, unless the store has these bytes."""
        key = self._key("datasets", name)
        with self._faults("written"):
            if not self._storage.exists(key):
                self._storage.put_file(str(file), key)

    def add_dataset(self, file: Path, name: str) -> None:
        """Uploads a file again if it was removed since; keeps it as a copy."""
        self.upload_dataset(file, name)
        self._datasets.mkdir(parents=True, exist_ok=True)
        file.replace(self._datasets / name)

    def dataset(self, name: str) -> Path:
        """Returns the copy of a dataset; downloads and verifies it if missing."""
        place = super().dataset(name)
        if place.exists():
            return place
        self._datasets.mkdir(parents=True, exist_ok=True)
        part = self._datasets / f".{name}.{new_id()}"
        key = self._key("datasets", name)
        try:
            with self._faults("read"):
                self._storage.get_file(key, str(part))
            with part.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != name.partition(".")[0]:
                raise StoreError(
                    f"The dataset {name} has the SHA-256 {found}", self.url
                )
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
        return place

    def dataset_names(self) -> list[str]:
        """Returns the names of the datasets, including copies on this machine."""
        copies = {p.name for p in self._datasets.glob("*") if p.name[0] != "."}
        return sorted(copies.union(self._names("datasets")))

    def remove_dataset(self, name: str) -> None:
        """Removes a dataset and its copy on this machine, if they exist."""
        self._remove(self._key("datasets", name))
        super().remove_dataset(name)

    # Checkpoints

    def save_checkpoints(self, job_id: str) -> None:
        """Uploads new checkpoints; removes stored ones that are replaced."""
        scratch = JobFiles(self._settings, job_id).scratch
        here = {
            path.relative_to(scratch).as_posix(): path
            for path in scratch.rglob(_CHECKPOINT)
        }
        there = self._stored_checkpoints(job_id)
        with self._faults("written"):
            for name in sorted(here.keys() - there.keys()):
                # Training may replace an old checkpoint meanwhile.
                with suppress(FileNotFoundError):
                    self._storage.pipe_file(
                        self._key("checkpoints", job_id, name), here[name].read_bytes()
                    )
        for name in there.keys() - here.keys():
            self._remove(there[name])

    def restore_checkpoints(self, job_id: str) -> None:
        """Downloads checkpoints that the scratch directory of a job lacks."""
        scratch = JobFiles(self._settings, job_id).scratch
        for name, key in self._stored_checkpoints(job_id).items():
            place = scratch / name
            if place.exists():
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_name(f".{place.name}.{new_id()}")
            with self._faults("read"):
                self._storage.get_file(key, str(part))
            part.replace(place)

    def remove_checkpoints(self, job_id: str) -> None:
        """Removes the stored checkpoints of a job."""
        for key in self._stored_checkpoints(job_id).values():
            self._remove(key)

    def jobs_with_checkpoints(self) -> set[str]:
        """Returns the ids of jobs with stored checkpoints."""
        return set(self._names("checkpoints"))

    def _stored_checkpoints(self, job_id: str) -> dict[str, str]:
        root = self._key("checkpoints", job_id)
        return {key.removeprefix(f"{root}/"): key for key in self._find(root)}

    # Versions

    def upload_version(self, staged: Path) -> None:
        """Uploads the files of a staged model; the manifest is last."""
        files = [path for path in staged.rglob("*") if path.is_file()]
        manifest = staged / MANIFEST_PATH
        with self._faults("written"):
            for batch in ([path for path in files if path != manifest], [manifest]):
                keys = [
                    self._key("versions", staged.name, path.relative_to(staged))
                    for path in batch
                ]
                self._storage.put([str(path) for path in batch], keys)

    def add_version(self, staged: Path, name: str, at_least: int) -> int:
        """Writes the marker of the next number."""
        manifest = (staged / MANIFEST_PATH).read_bytes()
        marker = _Marker(staged.name, hashlib.sha256(manifest).hexdigest())
        taken = self.numbers(name)
        for number in taken:
            key = self._key("models", name, number)
            # An earlier call wrote the marker, but its transaction was lost.
            if number >= at_least and self._read_marker(key) == marker:
                return number
        number = max([at_least, *(number + 1 for number in taken)])
        with self._faults("written"):
            key = self._key("models", name, number)
            self._storage.pipe_file(key, json.dumps(marker._asdict()).encode())
        return number

    def uploads(self) -> list[str]:
        """Returns the names of uploaded models that are not versions."""
        uploads = self._names("versions")
        placed = self._placed()
        return [name for name in uploads if name not in placed]

    def remove_upload(self, name: str) -> None:
        """Removes an uploaded model, unless it is a version.

        The attempt must have ended: no marker of these files will be created.
        """
        if name in self._placed():
            return
        for key in self._find(self._key("versions", name)):
            self._remove(key)

    def _placed(self) -> set[str]:
        """Returns the names of the uploaded models that are versions."""
        committed: dict[str, _Marker] = {}
        for key in self._find(self._key("models")):
            with suppress(FileNotFoundError):  # Removed meanwhile.
                # A marker never changes, so each is read once.
                known = self._committed.get(key)
                committed[key] = known or self._read_marker(key)
        self._committed = committed
        return {marker.files for marker in committed.values()}

    def numbers(self, name: str) -> list[int]:
        """Returns the numbers of the versions of a model, in order."""
        found = map(version_number, map(Path, self._names("models", name)))
        return sorted(number for number in found if number is not None)

    def manifest(self, name: str, number: int) -> bytes:
        """Returns the manifest of a version."""
        marker = self._read_marker(self._key("models", name, number))
        with self._faults("read"):
            content: bytes = self._storage.cat_file(
                self._key("versions", marker.files, MANIFEST_PATH)
            )
        if hashlib.sha256(content).hexdigest() != marker.manifest_sha256:
            raise ManifestError("The manifest in the store was changed")
        return content

    def version(self, name: str, number: int) -> Path:
        """Returns the copy of a version; downloads and verifies it if missing.

        A copy from an earlier process is verified once, and downloaded again if the
        disk has damaged it.
        """
        place = super().version(name, number)
        if place in self._verified:
            return place
        if place.is_dir():
            try:
                self._verify_copy(name, number, place)
            except StoreError:
                raise
            except (ManifestError, OSError) as error:
                logger.warning("%s is downloaded again: %s", place, error)
                # Another process may remove it too.
                shutil.rmtree(place, ignore_errors=True)
        if not place.is_dir():
            with suppress(FileExistsError), atomic_directory(place) as part:
                # Another process may have downloaded it meanwhile.
                self._download(name, number, part)
        self._verified.add(place)
        return place

    def _verify_copy(self, name: str, number: int, place: Path) -> None:
        """Raises `ManifestError` unless a copy is that of the version in this store."""
        marker = self._read_marker(self._key("models", name, number))
        content = (place / MANIFEST_PATH).read_bytes()
        if hashlib.sha256(content).hexdigest() != marker.manifest_sha256:
            raise ManifestError("it is a copy from another store")
        Manifest.from_json(content).verify(place)

    def _download(self, name: str, number: int, directory: Path) -> None:
        marker = self._read_marker(self._key("models", name, number))
        try:
            content = self.manifest(name, number)
            manifest = Manifest.from_json(content)
            places = [directory / _inside(path) for path in manifest.files]
        except ManifestError as error:
            raise StoreError(
                f"Version {number} of the model {name!r} cannot be read: {error}",
                self.url,
            ) from None
        keys = [self._key("versions", marker.files, path) for path in manifest.files]
        for place in (*places, directory / MANIFEST_PATH):
            place.parent.mkdir(parents=True, exist_ok=True)
        with self._faults("read"):
            self._storage.get(keys, [str(place) for place in places])
        (directory / MANIFEST_PATH).write_bytes(content)
        try:
            manifest.verify(directory)
        except ManifestError as error:
            raise StoreError(str(error), self.url) from None

    def hide_version(self, name: str, number: int) -> None:
        """Stores that a version is being deleted."""
        with self._faults("written"):
            self._storage.pipe_file(self._key("deleting", name, number), b"{}")
        self._looked_at = float("-inf")

    def hidden_versions(self) -> list[tuple[str, int]]:
        """Returns the versions whose removal is prepared; looks once a minute."""
        now = time.monotonic()
        if now - self._looked_at < _SECONDS_BETWEEN_LOOKS:
            return []
        found = [PurePosixPath(key) for key in self._find(self._key("deleting"))]
        self._looked_at = now
        return [(key.parent.name, int(key.name)) for key in found]

    def restore_version(self, name: str, number: int) -> None:
        """Forgets that a version was being deleted."""
        self._remove(self._key("deleting", name, number))

    def remove_version(self, name: str, number: int) -> None:
        """Removes a version and its copy; its marker goes first."""
        key = self._key("models", name, number)
        with suppress(FileNotFoundError):
            marker = self._read_marker(key)
            self._remove(key)
            for file in self._find(self._key("versions", marker.files)):
                self._remove(file)
        self._committed.pop(key, None)
        self.remove_copy(name, number)
        self._remove(self._key("deleting", name, number))

    def remove_copy(self, name: str, number: int) -> None:
        """Removes this machine's copy of a version, if it has one."""
        place = super().version(name, number)
        self._verified.discard(place)
        shutil.rmtree(place, ignore_errors=True)

    # Objects

    def _key(self, *parts: object) -> str:
        return "/".join([self._root, *map(str, parts)])

    def _names(self, *parts: object) -> list[str]:
        """Returns the names directly under a key."""
        root = self._key(*parts)
        with self._faults("listed"):
            try:
                return [
                    PurePosixPath(key).name for key in self._storage.ls(root, False)
                ]
            except FileNotFoundError:
                # Only this listing fails if there is no such bucket.
                self._storage.find(self._key("check"))
                return []

    def _find(self, root: str) -> list[str]:
        """Returns the keys of all objects under a key."""
        with self._faults("listed"):
            found: list[str] = self._storage.find(root)
        return found

    def _remove(self, key: str) -> None:
        with self._faults("deleted"), suppress(FileNotFoundError):
            self._storage.rm_file(key)

    def _read_marker(self, key: str) -> _Marker:
        with self._faults("read"):
            return _Marker(**json.loads(self._storage.cat_file(key)))

    @contextmanager
    def _faults(self, action: str) -> Iterator[None]:
        """Turns errors of a storage's client into `StoreError`.

        Lets `FileNotFoundError` pass if the bucket exists.
        """
        try:
            yield
        except StoreError:
            raise
        except FileNotFoundError as error:
            if "bucket does not exist" not in str(error):
                raise
            raise StoreError("There is no such bucket", self.url) from None
        except PermissionError as error:
            raise StoreError(
                f"It could not be {action}: access was denied ({_sentence(error)}); "
                "check the rights of the service's credentials",
                self.url,
            ) from error
        except Exception as error:
            # Each storage's client has exceptions of its own.
            kind = StoreOutageError if _is_outage(error) else StoreError
            raise kind(
                f"It could not be {action}: {_sentence(error)}", self.url
            ) from error


def _is_outage(error: BaseException) -> bool:
    """Returns whether a storage may answer later: no connection, or a fault of its."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"ConnectionError", "HTTPClientError", "TimeoutError"}:
        return True
    return _status(error) >= 500


def _status(error: BaseException) -> int:
    """Returns the HTTP status of a storage's answer, or 0 if there was none."""
    response = getattr(error.__cause__, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _inside(path: str) -> str:
    """Returns a relative path, unless it leads out of its directory."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ManifestError(f"A manifest names files beneath it. Received: {path!r}")
    return path
