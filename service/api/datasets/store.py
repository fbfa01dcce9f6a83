"""Stores the files of datasets, and their rows in the database."""

import logging
import re

import sqlalchemy
from sqlalchemy.orm import Session

from service.api.datasets.upload_file import UploadFile, sweep_uploads
from service.api.keys.caller import Caller
from service.shared.database import Database
from service.shared.database.tables import Dataset, Job, Key
from service.shared.errors import DatasetInUse, QuotaExceeded, UnknownDataset
from service.shared.files import dataset_name
from service.shared.job_state import UNFINISHED
from service.shared.sandbox import Inspection
from service.shared.settings import Settings
from service.shared.store import Store
from tfbbb.tables.format import FORMATS, Format

logger = logging.getLogger(__name__)

_FILE = re.compile(rf"([0-9a-f]{{64}})\.({'|'.join(map(re.escape, FORMATS))})")


class DatasetStore:
    """The files of datasets, one per SHA-256, and the rows that refer to them.

    A file is stored before its first row is added, and deleted after its last row. The
    next start removes the files of a process that died in between.
    """

    def __init__(self, settings: Settings, database: Database, store: Store) -> None:
        self._settings = settings
        self._most_bytes = settings.max_dataset_bytes
        self._database = database
        self._store = store
        self._uploads = settings.data_dir / "uploads"

    def sweep(self) -> None:
        """Removes the files that dead processes left; safe beside other processes.

        If the database has no dataset at all, removes no dataset file.
        """
        sweep_uploads(self._uploads)
        with self._database.reading() as session:
            query = sqlalchemy.select(Dataset.sha256).distinct()
            referred = set(session.scalars(query))
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
        return UploadFile(self._uploads, self._settings.min_free_bytes)

    def look_up(
        self, caller: Caller, file: UploadFile, name: str | None
    ) -> tuple[Dataset | None, Inspection | None]:
        """Looks up the bytes of an upload.

        Gives the caller's dataset with these bytes the name of the upload, if it has
        one.
        """
        with self._database.writing() as session:
            own = find_upload(session, caller, file.sha256)
            if own is not None:
                own.uploaded_again_at = self._database.now(session)
                own.name = name or own.name
                return own, None
            check_quota(session, caller, file.num_bytes, self._most_bytes)
            same = find_same_bytes(session, file.sha256)
        if same is None:
            return None, None
        return None, Inspection(
            num_rows=same.num_rows, columns=same.columns, problems=same.problems
        )

    def add(
        self,
        caller: Caller,
        name: str,
        file: UploadFile,
        format: Format,
        inspection: Inspection,
    ) -> tuple[Dataset, bool]:
        """Moves an upload to its place, and adds its row."""
        stored = dataset_name(file.sha256, format)
        file.sync()
        self._store.upload_dataset(file.path, stored)
        with self._database.writing() as session:
            self._database.lock(session, file.sha256)
            own = find_upload(session, caller, file.sha256)
            if own is not None:
                return own, False
            check_quota(session, caller, file.num_bytes, self._most_bytes)
            self._store.add_dataset(file.path, stored)
            dataset = Dataset(
                key_id=caller.key_id,
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
        """Deletes a dataset, and its file unless another dataset has the same bytes.

        Raises `DatasetInUse` if an unfinished job needs it; with `unused_since`, if any
        job does, or if its bytes came after this time.
        """
        with self._database.writing() as session:
            dataset = get_dataset(session, dataset_id, to_change=True)
            jobs = sqlalchemy.select(Job.id).where(Job.dataset_id == dataset.id)
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
            if find_same_bytes(session, sha256) is not None:
                return
            try:
                self._store.remove_dataset(dataset_name(sha256, format))
            except OSError as error:
                # The row is deleted; the next start tries again.
                logger.warning("could not remove a deleted dataset's file: %s", error)


_ID = re.compile(r"[0-9a-f]{24}")


def owned_by(caller: Caller) -> sqlalchemy.ColumnElement[bool]:
    """Returns the condition that a dataset belongs to the caller."""
    return Dataset.key_id.is_not_distinct_from(caller.key_id)


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


def find_upload(session: Session, caller: Caller, sha256: str) -> Dataset | None:
    """Returns the caller's dataset with this SHA-256, or None."""
    return session.scalar(
        sqlalchemy.select(Dataset).where(Dataset.sha256 == sha256, owned_by(caller))
    )


def find_same_bytes(session: Session, sha256: str) -> Dataset | None:
    """Returns a dataset of any caller with this SHA-256, or None."""
    query = sqlalchemy.select(Dataset).where(Dataset.sha256 == sha256).limit(1)
    return session.scalar(query)


def check_quota(
    session: Session, caller: Caller, num_bytes: int, most_bytes: int
) -> None:
    """Raises `QuotaExceeded` unless the caller may add a dataset of this size."""
    if caller.key_id is not None:
        # Lock the key, so that two of its uploads cannot exceed the limit together.
        key = sqlalchemy.select(Key.id).where(Key.id == caller.key_id)
        session.execute(key.with_for_update())
    used = sqlalchemy.func.coalesce(sqlalchemy.func.sum(Dataset.num_bytes), 0)
    num_used = session.scalar(sqlalchemy.select(used).where(owned_by(caller))) or 0
    if num_used + num_bytes > most_bytes:
        raise QuotaExceeded(
            f"The datasets of the key {caller.name!r:.100} may have "
            f"{most_bytes} bytes in all (TFBBB_MAX_DATASET_BYTES); delete some. "
            f"Received: {num_bytes} bytes beside the {num_used} stored"
        )


# When the bytes came last.
UPLOADED_AT = sqlalchemy.func.coalesce(Dataset.uploaded_again_at, Dataset.created_at)


def is_unused_since(until: float) -> sqlalchemy.ColumnElement[bool]:
    """Returns the condition that a dataset came until a time, and no job has it."""
    jobs = sqlalchemy.select(Job.id).where(Job.dataset_id == Dataset.id)
    return sqlalchemy.and_(until >= UPLOADED_AT, ~jobs.exists())
