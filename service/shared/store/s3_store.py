"""A store in a bucket of S3, or of a storage that speaks its protocol.

Its objects, under the URL of the store:

    datasets/SHA256.FORMAT              a table
    checkpoints/JOB_ID/...              checkpoints of a job that has not ended
    versions/JOB_ID.ATTEMPT/...         the files of a model that an attempt exported
    models/NAME/VERSION/JOB_ID.ATTEMPT  the *marker* of a version: its manifest
    deleting/NAME/VERSION               the version is being deleted

An attempt uploads its files under a key of its own, so no two attempts write the same
object. A version exists from the moment its marker does. The caller locks the numbers
of a model in the database, so that a number has one version for ever.
"""

import hashlib
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from service.shared.database import new_id
from service.shared.files import JobFiles
from service.shared.settings import Settings
from service.shared.store.store import Store, StoreError, StoreOutageError
from tfbbb.base.files import atomic_directory
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, ManifestError
from tfbbb.export.versions import version_number

logger = logging.getLogger(__name__)

# Other processes may also prepare removals; each looks for them now and then.
_SECONDS_BETWEEN_LOOKS = 60.0
_CHECKPOINT = "checkpoint-*"


class S3Store(Store):
    """A store in S3; each machine keeps copies of the objects that it reads.

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
        self._root = self.url.removeprefix("s3://")
        self._verified: set[Path] = set()
        self._looked_at = float("-inf")
        try:
            from s3fs import S3FileSystem
        except ImportError:
            raise StoreError(
                "A store at s3:// needs the package `s3fs`: pip install 'tfbbb[s3]'",
                self.url,
            ) from None
        # Other processes add and remove objects, so no listing may be cached.
        self._storage: Any = S3FileSystem(use_listings_cache=False)

    def check(self) -> None:
        key, content = self._key("check", new_id()), new_id().encode()
        self._write(key, content)
        if self._read(key) != content:
            raise StoreError("It did not return the bytes that it was given", self.url)
        self._remove(key)

    def ping(self) -> None:
        self._find("check")

    # Datasets

    def upload_dataset(self, file: Path, name: str) -> None:
        key = self._key("datasets", name)
        with self._faults("written"):
            if not self._storage.exists(key):
                self._storage.put_file(str(file), key)

    def add_dataset(self, file: Path, name: str) -> None:
        """Uploads a file again if it was removed since; keeps it as a copy."""
        self.upload_dataset(file, name)
        super().add_dataset(file, name)

    def dataset(self, name: str) -> Path:
        """Returns the copy of a dataset; downloads and verifies it if missing."""
        place = super().dataset(name)
        if place.exists():
            return place
        with self._downloaded(self._key("datasets", name), place) as part:
            with part.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != name.partition(".")[0]:
                raise StoreError(
                    f"The dataset {name} has the SHA-256 {found}", self.url
                )
        return place

    def dataset_names(self) -> list[str]:
        """Returns the names of the datasets, including copies on this machine."""
        copies = {name for name in super().dataset_names() if name[0] != "."}
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
        for name in sorted(here.keys() - there.keys()):
            # Training may replace an old checkpoint meanwhile.
            with suppress(FileNotFoundError):
                key = self._key("checkpoints", job_id, name)
                self._write(key, here[name].read_bytes())
        for name in there.keys() - here.keys():
            self._remove(there[name])

    def restore_checkpoints(self, job_id: str) -> None:
        """Downloads checkpoints that the scratch directory of a job lacks."""
        scratch = JobFiles(self._settings, job_id).scratch
        for name, key in self._stored_checkpoints(job_id).items():
            if not (scratch / name).exists():
                with self._downloaded(key, scratch / name):
                    pass

    def remove_checkpoints(self, job_id: str) -> None:
        for key in self._stored_checkpoints(job_id).values():
            self._remove(key)

    def jobs_with_checkpoints(self) -> set[str]:
        return set(self._names("checkpoints"))

    def _stored_checkpoints(self, job_id: str) -> dict[str, str]:
        root = self._key("checkpoints", job_id)
        keys = self._find("checkpoints", job_id)
        return {key.removeprefix(f"{root}/"): key for key in keys}

    # Versions

    def upload_version(self, staged: Path) -> None:
        files = [path for path in staged.rglob("*") if path.is_file()]
        keys = [
            self._key("versions", staged.name, path.relative_to(staged).as_posix())
            for path in files
        ]
        with self._faults("written"):
            self._storage.put([str(path) for path in files], keys)

    def add_version(self, staged: Path, name: str, at_least: int) -> int:
        """Writes the marker of the next number."""
        markers = self._markers(name)
        for number, marker in markers.items():
            # An earlier call wrote the marker, but its transaction was lost.
            if number >= at_least and marker.name == staged.name:
                return number
        number = max([at_least, *(number + 1 for number in markers)])
        manifest = (staged / MANIFEST_PATH).read_bytes()
        self._write(self._key("models", name, number, staged.name), manifest)
        return number

    def uploads(self) -> list[str]:
        # In this order, because an upload may become a version meanwhile.
        uploads = self._names("versions")
        versions = {Path(key).name for key in self._find("models")}
        return [name for name in uploads if name not in versions]

    def remove_upload(self, name: str) -> None:
        """Removes an uploaded model, whose attempt has ended, unless it is a version.

        No marker of these files will be created.
        """
        if name in self.uploads():
            for key in self._find("versions", name):
                self._remove(key)

    def numbers(self, name: str) -> list[int]:
        return sorted(self._markers(name))

    def manifest(self, name: str, number: int) -> bytes:
        return self._read(str(self._marker(name, number)))

    def version(self, name: str, number: int) -> Path:
        """Returns the copy of a version; downloads and verifies it if missing.

        A copy from an earlier process is verified once, and downloaded again if the
        disk has damaged it.
        """
        place = super().version(name, number)
        if place in self._verified:
            return place
        marker = self._marker(name, number)
        content = self._read(str(marker))
        if place.is_dir():
            try:
                _verify(place, content)
            except (ManifestError, OSError) as error:
                logger.warning("%s is downloaded again: %s", place, error)
                # Another process may remove it too.
                shutil.rmtree(place, ignore_errors=True)
        if not place.is_dir():
            # Another process may have downloaded it meanwhile.
            with suppress(FileExistsError), atomic_directory(place) as part:
                self._download(marker.name, part)
                try:
                    _verify(part, content)
                except ManifestError as error:
                    raise StoreError(
                        f"Version {number} of the model {name!r} cannot be read: "
                        f"{error}",
                        self.url,
                    ) from None
        self._verified.add(place)
        return place

    def _download(self, upload: str, directory: Path) -> None:
        """Downloads the files of an uploaded model."""
        root = self._key("versions", upload)
        # A key that somebody else wrote must not lead out of the directory.
        keys = [k for k in self._find("versions", upload) if ".." not in k.split("/")]
        places = [directory / key.removeprefix(f"{root}/") for key in keys]
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
        with self._faults("read"):
            self._storage.get(keys, [str(place) for place in places])

    def hide_version(self, name: str, number: int) -> None:
        self._write(self._key("deleting", name, number), b"{}")
        self._looked_at = float("-inf")

    def hidden_versions(self) -> list[tuple[str, int]]:
        """Returns the versions whose removal is prepared; looks once a minute."""
        now = time.monotonic()
        if now - self._looked_at < _SECONDS_BETWEEN_LOOKS:
            return []
        found = [Path(key) for key in self._find("deleting")]
        self._looked_at = now
        return [(key.parent.name, int(key.name)) for key in found]

    def restore_version(self, name: str, number: int) -> None:
        self._remove(self._key("deleting", name, number))

    def remove_version(self, name: str, number: int) -> None:
        """Removes a version and its copy; its marker goes first."""
        with suppress(FileNotFoundError):
            marker = self._marker(name, number)
            self._remove(str(marker))
            for file in self._find("versions", marker.name):
                self._remove(file)
        self.remove_copy(name, number)
        self._remove(self._key("deleting", name, number))

    def remove_copy(self, name: str, number: int) -> None:
        place = super().version(name, number)
        self._verified.discard(place)
        shutil.rmtree(place, ignore_errors=True)

    def _markers(self, name: str) -> dict[int, Path]:
        """Returns the keys of the markers of a model's versions, by number."""
        return {
            number: key
            for key in map(Path, self._find("models", name))
            if (number := version_number(key.parent)) is not None
        }

    def _marker(self, name: str, number: int) -> Path:
        for key in self._find("models", name, number):
            return Path(key)
        raise FileNotFoundError(f"There is no version {number} of the model {name!r}")

    # Objects

    def _key(self, *parts: object) -> str:
        return "/".join([self._root, *map(str, parts)])

    def _names(self, *parts: object) -> list[str]:
        """Returns the names directly under a key."""
        with self._faults("listed"):
            try:
                keys = self._storage.ls(self._key(*parts), detail=False)
            except FileNotFoundError:
                # Only this listing fails if there is no such bucket.
                self._storage.find(self._key("check"))
                return []
        return [Path(key).name for key in keys]

    def _find(self, *parts: object) -> list[str]:
        """Returns the keys of all objects under a key."""
        with self._faults("listed"):
            found: list[str] = self._storage.find(self._key(*parts))
        return found

    def _read(self, key: str) -> bytes:
        with self._faults("read"):
            content: bytes = self._storage.cat_file(key)
        return content

    def _write(self, key: str, content: bytes) -> None:
        with self._faults("written"):
            self._storage.pipe_file(key, content)

    def _remove(self, key: str) -> None:
        with self._faults("deleted"), suppress(FileNotFoundError):
            self._storage.rm_file(key)

    @contextmanager
    def _downloaded(self, key: str, place: Path) -> Iterator[Path]:
        """Downloads an object beside a place, to which it goes after the block."""
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{new_id()}")
        try:
            with self._faults("read"):
                self._storage.get_file(key, str(part))
            yield part
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def _faults(self, action: str) -> Iterator[None]:
        """Turns errors of the storage's client into `StoreError`.

        Lets `FileNotFoundError` pass if the bucket exists.
        """
        try:
            yield
        except FileNotFoundError as error:
            if "bucket does not exist" not in str(error):
                raise
            raise StoreError("There is no such bucket", self.url) from None
        except Exception as error:
            kind = StoreOutageError if _is_outage(error) else StoreError
            what = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, PermissionError):
                what = (
                    f"access was denied ({what}); check the rights of the service's "
                    "credentials"
                )
            raise kind(f"It could not be {action}: {what}", self.url) from error


def _verify(directory: Path, manifest: bytes) -> None:
    """Raises `ManifestError` unless a directory is the version of a manifest."""
    if (directory / MANIFEST_PATH).read_bytes() != manifest:
        raise ManifestError("it has another manifest than the version in the store")
    Manifest.from_json(manifest).verify(directory)


def _is_outage(error: BaseException) -> bool:
    """Returns whether a storage may answer later: no connection, or a fault of its."""
    names = {kind.__name__ for kind in type(error).__mro__}
    response = getattr(error.__cause__, "response", None) or {}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or bool(
        names & {"ConnectionError", "HTTPClientError", "TimeoutError"}
    )
