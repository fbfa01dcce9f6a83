"""Datasets in the database."""

import re

import sqlalchemy
from sqlalchemy.orm import Session

from service.api.keys.caller import Caller
from service.shared.database import Database
from service.shared.database.tables import Dataset, Job, Key
from service.shared.errors import DatasetInUse, QuotaExceeded, UnknownDataset
from service.shared.job_state import UNFINISHED

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


def check_unused_since(session: Session, dataset: Dataset, until: float) -> None:
    """Raises `DatasetInUse` unless a locked dataset is unused since a time."""
    query = sqlalchemy.select(Dataset.id).where(
        Dataset.id == dataset.id, is_unused_since(until)
    )
    if session.scalar(query) is None:
        raise DatasetInUse(
            "A job has the dataset, or it was uploaded again meanwhile. "
            f"Received: {dataset.id}"
        )


def check_unused(session: Session, dataset: Dataset) -> None:
    """Raises `DatasetInUse` if an unfinished job needs the dataset."""
    job_id = session.scalar(
        sqlalchemy.select(Job.id)
        .where(Job.dataset_id == dataset.id, Job.state.in_(UNFINISHED))
        .limit(1)
    )
    if job_id is not None:
        raise DatasetInUse(
            f"The job {job_id} needs the dataset; cancel the job, or wait until it "
            f"has ended. Received: {dataset.id}"
        )
