"""A store in a bucket of S3, or of a storage that speaks its protocol.

Its objects, under the URL of the store:

    datasets/SHA256.FORMAT              a table
    checkpoints/JOB_ID/...              checkpoints of a job that has not ended
    versions/JOB_ID.ATTEMPT/...         the files of a model that an attempt exported
    models/NAME/VERSION/JOB_ID.ATTEMPT  the *marker* of a version: its manifest

No two attempts write the same object. A version exists from the moment its marker does.
Its number comes from the database, where the caller has locked the model's numbers.
"""

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator
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


class S3Store(Store):
    """A store in S3; each machine has copies of what it reads in its data directory."""

    is_directory = False

    def __init__(self, settings: Settings) -> None:
        assert settings.store is not None
        super().__init__(settings)
        self.url = self.datasets_url = settings.store.rstrip("/")
        self.models = settings.data_dir / "models"
        self._settings = settings
        self._root = self.url.removeprefix("s3://")
        self._verified: set[Path] = set()
        try:
            from s3fs import S3FileSystem
        except ImportError:
            advice = (
                "A store at s3:// needs the package `s3fs`: pip install 'tfbbb[s3]'"
            )
            raise StoreError(advice, self.url) from None
        # Other processes add and remove objects, so no listing may be cached.
        self._storage: Any = S3FileSystem(use_listings_cache=False)

    def check(self) -> None:
        key, content = self._key("check", new_id()), new_id().encode()
        self._write(key, content)
        if self._read(key) != content:
            raise StoreError("It did not return the bytes that it was given", self.url)
        self._remove(key)

    def ping(self) -> None:
        self._under("check")

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
        if not place.exists():
            self._fetch(self._key("datasets", name), place, name.partition(".")[0])
        return place

    def dataset_names(self) -> list[str]:
        return sorted({*super().dataset_names(), *self._under("datasets")})

    def remove_dataset(self, name: str) -> None:
        self._remove(self._key("datasets", name))
        super().remove_dataset(name)

    def save_checkpoints(self, job_id: str) -> None:
        scratch = JobFiles(self._settings, job_id).scratch
        here = {_name(scratch, path): path for path in scratch.rglob("checkpoint-*")}
        there = self._under("checkpoints", job_id)
        for name in sorted(here.keys() - there.keys()):
            # Training may replace an old checkpoint meanwhile.
            with suppress(FileNotFoundError):
                key = self._key("checkpoints", job_id, name)
                self._write(key, here[name].read_bytes())
        self._remove(*(there[name] for name in there.keys() - here.keys()))

    def restore_checkpoints(self, job_id: str) -> None:
        scratch = JobFiles(self._settings, job_id).scratch
        for name, key in self._under("checkpoints", job_id).items():
            if not (scratch / name).exists():
                self._fetch(key, scratch / name)

    def remove_checkpoints(self, job_id: str) -> None:
        self._remove(*self._under("checkpoints", job_id).values())

    def jobs_with_checkpoints(self) -> set[str]:
        return {name.partition("/")[0] for name in self._under("checkpoints")}

    def upload_version(self, staged: Path) -> None:
        files = [path for path in staged.rglob("*") if path.is_file()]
        keys = [self._key("versions", staged.name, _name(staged, x)) for x in files]
        with self._faults("written"):
            self._storage.put(list(map(str, files)), keys)

    def add_version(self, staged: Path, name: str, at_least: int) -> int:
        """Writes the marker of the first number whose marker is free.

        One that is not is of a transaction that was lost, perhaps of an earlier call.
        """
        number = at_least
        while markers := self._under("models", name, number):
            if staged.name in markers:
                return number
            number += 1
        manifest = (staged / MANIFEST_PATH).read_bytes()
        self._write(self._key("models", name, number, staged.name), manifest)
        return number

    def remove_uploads(self, has_ended: Callable[[str], bool]) -> None:
        ended = {name for name in self._uploads() if has_ended(name)}
        # One may have become a version before its attempt ended; none does after.
        for name in ended.intersection(self._uploads() if ended else ()):
            self._remove(*self._under("versions", name).values())

    def _uploads(self) -> set[str]:
        """Returns the names of uploads that are no versions."""
        # In this order, because an upload may become a version meanwhile.
        uploads = {name.partition("/")[0] for name in self._under("versions")}
        return uploads - {Path(marker).name for marker in self._under("models")}

    def numbers(self, name: str) -> list[int]:
        found = (version_number(Path(x).parent) for x in self._under("models", name))
        return sorted(number for number in found if number is not None)

    def manifest(self, name: str, number: int) -> bytes:
        return self._read(self._marker(name, number))

    def version(self, name: str, number: int) -> Path:
        """Returns the copy of a version, verified once; downloads it if need be."""
        place = super().version(name, number)
        if place in self._verified:
            return place
        marker = self._marker(name, number)
        manifest = self._read(marker)
        if place.is_dir():
            try:
                _verify(place, manifest)
            except (ManifestError, OSError) as error:
                logger.warning("%s is downloaded again: %s", place, error)
                # Another process may remove it too.
                shutil.rmtree(place, ignore_errors=True)
        if not place.is_dir():
            # Another process may have downloaded it meanwhile.
            with suppress(FileExistsError), atomic_directory(place) as part:
                self._download(Path(marker).name, part)
                try:
                    _verify(part, manifest)
                except ManifestError as error:
                    what = f"Version {number} of the model {name!r} cannot be read"
                    raise StoreError(f"{what}: {error}", self.url) from None
        self._verified.add(place)
        return place

    def _download(self, upload: str, directory: Path) -> None:
        """Downloads the files of an uploaded model."""
        files = self._under("versions", upload)
        # A key that somebody else wrote must not lead out of the directory.
        names = [name for name in files if ".." not in name.split("/")]
        places = [str(directory / name) for name in names]
        with self._faults("read"):
            self._storage.get([files[name] for name in names], places)

    def remove_version(self, name: str, number: int) -> None:
        """Removes a version and its copy; its marker goes first."""
        with suppress(FileNotFoundError):
            marker = self._marker(name, number)
            self._remove(marker, *self._under("versions", Path(marker).name).values())
        self.remove_copy(name, number)

    def remove_copy(self, name: str, number: int) -> None:
        place = super().version(name, number)
        self._verified.discard(place)
        shutil.rmtree(place, ignore_errors=True)

    def _marker(self, name: str, number: int) -> str:
        if markers := self._under("models", name, number):
            return next(iter(markers.values()))
        raise FileNotFoundError(f"There is no version {number} of the model {name!r}")

    def _key(self, *parts: object) -> str:
        return "/".join([self._root, *map(str, parts)])

    def _under(self, *parts: object) -> dict[str, str]:
        """Returns the keys of all objects under a key, by what follows it."""
        root = self._key(*parts)
        with self._faults("listed"):
            return {key[len(root) + 1 :]: key for key in self._storage.find(root)}

    def _read(self, key: str) -> bytes:
        with self._faults("read"):
            return bytes(self._storage.cat_file(key))

    def _write(self, key: str, content: bytes) -> None:
        with self._faults("written"):
            self._storage.pipe_file(key, content)

    def _remove(self, *keys: str) -> None:
        for key in keys:
            with self._faults("deleted"), suppress(FileNotFoundError):
                self._storage.rm_file(key)

    def _fetch(self, key: str, place: Path, sha256: str | None = None) -> None:
        """Downloads an object beside its place, checks its digest, and renames it."""
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{new_id()}")
        try:
            with self._faults("read"):
                self._storage.get_file(key, str(part))
            if sha256 is not None:
                with part.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                if found != sha256:
                    fault = f"The dataset {place.name} has the SHA-256 {found}"
                    raise StoreError(fault, self.url)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def _faults(self, action: str) -> Iterator[None]:
        """Turns errors into `StoreError`, but no `FileNotFoundError` in a bucket."""
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
                advice = "check the rights of the service's credentials"
                what = f"access was denied ({what}); {advice}"
            raise kind(f"It could not be {action}: {what}", self.url) from error


def _name(directory: Path, file: Path) -> str:
    return file.relative_to(directory).as_posix()


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
    lost = {"ConnectionError", "HTTPClientError", "TimeoutError"}
    return status >= 500 or not names.isdisjoint(lost)
