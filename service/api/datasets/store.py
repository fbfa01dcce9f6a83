"""Stores uploads, the files of datasets, and their rows in the database."""

import hashlib
import logging
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import Dataset, Job
from service.shared.errors import DatasetInUse, InsufficientStorage, UnknownDataset
from service.shared.files import dataset_name
from service.shared.job_state import UNFINISHED
from service.shared.sandbox import Inspection
from service.shared.settings import Settings
from service.shared.store import Store
from tfbbb.tables.format import BEGINNING_BYTES, FORMATS, Format

logger = logging.getLogger(__name__)

_FILE = re.compile(rf"([0-9a-f]{{64}})\.({'|'.join(map(re.escape, FORMATS))})")
_ID = re.compile(r"[0-9a-f]{24}")

_BYTES_BETWEEN_LOOKS = 2**25
# An upload, or a prediction of an uploaded file, takes less.
_SECONDS_OF_AN_UPLOAD = 24 * 3600.0


class UploadFile:
    """A file that is being written, in a directory of uploads."""

    def __init__(self, directory: Path, min_free_bytes: int) -> None:
        self._min_free_bytes = min_free_bytes
        self._sha256 = hashlib.sha256()
        self.num_bytes = 0
        self.beginning = b""
        self._look_at = _BYTES_BETWEEN_LOOKS
        directory.mkdir(parents=True, exist_ok=True)
        self._check_space(directory)
        self._descriptor, path = tempfile.mkstemp(".upload", dir=directory)
        self.path = Path(path)
        os.fchmod(self._descriptor, 0o640)

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes written so far."""
        return self._sha256.hexdigest()

    def write(self, data: bytes | bytearray) -> None:
        """Appends data."""
        if self.num_bytes >= self._look_at:
            self._check_space(self.path)
            self._look_at = self.num_bytes + _BYTES_BETWEEN_LOOKS
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self._sha256.update(data)
        self.num_bytes += len(data)
        missing = BEGINNING_BYTES - len(self.beginning)
        if missing:
            self.beginning += bytes(data[:missing])

    def sync(self) -> None:
        """Flushes the file to the disk."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Closes the file, and removes it unless it was moved."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            # The next start removes it.
            logger.warning("could not remove an unfinished upload: %s", error)
        finally:
            os.close(self._descriptor)

    def _check_space(self, path: Path) -> None:
        free = shutil.disk_usage(path).free
        if free < self._min_free_bytes:
            raise InsufficientStorage(
                f"The disk has {free} free bytes, but {self._min_free_bytes} must stay "
                "free (TFBBB_MIN_FREE_BYTES); delete datasets, or ask the operator of "
                "the service for space."
            )


def sweep_uploads(directory: Path) -> None:
    """Removes the uploads of processes that died."""
    for path in directory.glob("*.upload"):
        try:
            if time.time() - path.stat().st_mtime > _SECONDS_OF_AN_UPLOAD:
                path.unlink()
                logger.info("removed the unfinished upload %s", path.name)
        except OSError as error:
            logger.warning("could not remove an unfinished upload: %s", error)


class DatasetStore:
    """The files of datasets, one per SHA-256, and the rows that refer to them.

    A file is stored before its row is added, and deleted after it. The next start
    removes the files of a process that died in between.
    """

    def __init__(self, settings: Settings, database: Database, store: Store) -> None:
        self._min_free_bytes = settings.min_free_bytes
        self._database = database
        self._store = store
        self._uploads = settings.data_dir / "uploads"

    def sweep(self) -> None:
        """Removes the files that dead processes left; safe beside other processes.

        If the database has no dataset at all, removes no dataset file.
        """
        sweep_uploads(self._uploads)
        with self._database.reading() as session:
            referred = set(session.scalars(select(Dataset.sha256)))
        try:
            files = self._store.dataset_names()
        except OSError as error:
            # The next start tries again.
            logger.warning("could not look for leftover datasets: %s", error)
            return
        if files and not referred:
            # A new database may have replaced one that was lost.
            logger.warning(
                "kept %d files in %s that the database does not know: restore the "
                "database from a backup if it was lost, else delete the files",
                len(files),
                self._store.datasets_url,
            )
            return
        for file in files:
            name = _FILE.fullmatch(file)
            if name and name[1] not in referred:
                self._remove_unreferred(name[1], name[2])

    def begin(self) -> UploadFile:
        """Starts the file of an upload."""
        return UploadFile(self._uploads, self._min_free_bytes)

    def look_up(self, sha256: str, name: str | None) -> Dataset | None:
        """Returns the dataset with the bytes of an upload, and gives it its name."""
        with self._database.writing() as session:
            dataset = _find_bytes(session, sha256)
            if dataset is not None:
                dataset.uploaded_again_at = self._database.now(session)
                dataset.name = name or dataset.name
        return dataset

    def add(
        self, name: str, file: UploadFile, format: Format, inspection: Inspection
    ) -> tuple[Dataset, bool]:
        """Moves an upload to its place, and adds its row."""
        stored = dataset_name(file.sha256, format)
        file.sync()
        self._store.upload_dataset(file.path, stored)
        with self._database.writing() as session:
            self._database.lock(session, file.sha256)
            dataset = _find_bytes(session, file.sha256)
            if dataset is not None:
                return dataset, False
            self._store.add_dataset(file.path, stored)
            dataset = Dataset(
                name=name,
                sha256=file.sha256,
                format=format,
                num_bytes=file.num_bytes,
                num_rows=inspection.num_rows,
                columns=inspection.columns,
                problems=inspection.problems,
                created_at=self._database.now(session),
            )
            session.add(dataset)
            session.flush()
        return dataset, True

    def delete(self, dataset_id: str, *, unused_since: float | None = None) -> None:
        """Deletes a dataset with its file.

        Raises `DatasetInUse` if an unfinished job needs it; with `unused_since`, if any
        job does, or if its bytes came after this time.
        """
        with self._database.writing() as session:
            dataset = get_dataset(session, dataset_id, to_change=True)
            jobs = select(Job.id).where(Job.dataset_id == dataset.id)
            if unused_since is None:
                jobs = jobs.where(Job.state.in_(UNFINISHED))
            job_id = session.scalar(jobs.limit(1))
            if job_id is not None:
                raise DatasetInUse(
                    f"The job {job_id} needs the dataset; cancel the job, or wait "
                    f"until it has ended. Received: {dataset.id}"
                )
            came_at = dataset.uploaded_again_at or dataset.created_at
            if unused_since is not None and came_at > unused_since:
                raise DatasetInUse(
                    f"The dataset was uploaded again meanwhile. Received: {dataset.id}"
                )
            session.delete(dataset)
        self._remove_unreferred(dataset.sha256, dataset.format)

    def _remove_unreferred(self, sha256: str, format: str) -> None:
        with self._database.writing() as session:
            self._database.lock(session, sha256)
            if _find_bytes(session, sha256) is not None:
                return
            try:
                self._store.remove_dataset(dataset_name(sha256, format))
            except OSError as error:
                # The row is deleted; the next start tries again.
                logger.warning("could not remove a deleted dataset's file: %s", error)


def get_dataset(
    session: Session, dataset_id: str, *, to_change: bool = False
) -> Dataset:
    """Finds a dataset."""
    found = None
    if _ID.fullmatch(dataset_id):
        found = session.get(Dataset, dataset_id, with_for_update=to_change or None)
    if found is None:
        raise UnknownDataset(
            "There is no such dataset; `GET /v1/datasets` lists the datasets. "
            f"Received: {dataset_id!r:.100}"
        )
    return found


def find_dataset(database: Database, dataset_id: str) -> Dataset:
    """Finds a dataset in a new transaction."""
    with database.reading() as session:
        return get_dataset(session, dataset_id)


def _find_bytes(session: Session, sha256: str) -> Dataset | None:
    return session.scalar(select(Dataset).where(Dataset.sha256 == sha256).limit(1))


# When the bytes came last.
UPLOADED_AT = func.coalesce(Dataset.uploaded_again_at, Dataset.created_at)


def is_unused_since(until: float) -> ColumnElement[bool]:
    """Returns the condition that a dataset came until a time, and no job has it."""
    jobs = select(Job.id).where(Job.dataset_id == Dataset.id)
    return and_(until >= UPLOADED_AT, ~jobs.exists())
