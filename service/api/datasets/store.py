"""Stores the files of datasets, and their rows in the database."""

import logging
import re

import sqlalchemy
from sqlalchemy.orm import Session

from service.api.datasets import repository
from service.api.datasets.upload_file import UploadFile, sweep_uploads
from service.api.keys.caller import Caller
from service.shared.database import Database
from service.shared.database.tables import Dataset
from service.shared.files import dataset_name
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
        self._database.check()
        return UploadFile(self._uploads, self._settings.min_free_bytes)

    def look_up(
        self, caller: Caller, file: UploadFile, name: str | None
    ) -> tuple[Dataset | None, Inspection | None]:
        """Looks up the bytes of an upload.

        Gives the caller's dataset with these bytes the name of the upload, if it has
        one.
        """
        with self._database.writing() as session:
            own = repository.find_upload(session, caller, file.sha256)
            if own is not None:
                own.uploaded_again_at = self._database.now(session)
                own.name = name or own.name
                return own, None
            self._check_quota(session, caller, file)
            same = repository.find_same_bytes(session, file.sha256)
        if same is None:
            return None, None
        return None, Inspection(
            num_rows=same.num_rows,
            columns=same.columns,
            problems=same.problems,
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
            own = repository.find_upload(session, caller, file.sha256)
            if own is not None:
                return own, False
            self._check_quota(session, caller, file)
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
        """Deletes a dataset, and its file unless another dataset has the same bytes."""
        with self._database.writing() as session:
            dataset = repository.get_dataset(session, dataset_id, to_change=True)
            repository.check_unused(session, dataset)
            if unused_since is not None:
                repository.check_unused_since(session, dataset, unused_since)
            session.delete(dataset)
        self._remove_unreferred(dataset.sha256, dataset.format)

    def _check_quota(self, session: Session, caller: Caller, file: UploadFile) -> None:
        most = self._settings.max_dataset_bytes
        repository.check_quota(session, caller, file.num_bytes, most)

    def _remove_unreferred(self, sha256: str, format: str) -> None:
        with self._database.writing() as session:
            self._database.lock(session, sha256)
            if repository.find_same_bytes(session, sha256) is not None:
                return
            try:
                self._store.remove_dataset(dataset_name(sha256, format))
            except OSError as error:
                # The row is deleted; the next start tries again.
                logger.warning("could not remove a deleted dataset's file: %s", error)
