"""Deletes versions safely, also if the process crashes in between."""

import logging

from sqlalchemy import BigInteger, cast, select
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.errors import VersionInUse
from service.shared.job_state import UNFINISHED
from service.shared.store import Store

logger = logging.getLogger(__name__)


def delete_version(database: Database, store: Store, name: str, number: int) -> None:
    """Hides a version, so that `finish_deletions` can remove its files.

    Hides it before the transaction commits. If the process stops in between,
    `finish_deletions` restores the version.
    """
    with database.writing() as session:
        version = session.get(ModelVersion, (name, number), with_for_update=True)
        _check_unused(session, name, number)
        store.hide_version(name, number)
        if version is not None and version.deleted_at is None:
            version.deleted_at = database.now(session)


def finish_deletions(database: Database, store: Store) -> None:
    """Removes the files of deleted versions; restores those whose deletion failed.

    Any process may call this at any time.
    """
    for name, number in store.hidden_versions():
        with database.writing() as session:
            # Waits for a process that is deleting the version.
            version = session.get(ModelVersion, (name, number), with_for_update=True)
            if version is not None and version.deleted_at is None:
                _restore(store, name, number)
                continue
        store.remove_version(name, number)


def _restore(store: Store, name: str, number: int) -> None:
    what = f"version {number} of the model {name!r}"
    try:
        store.restore_version(name, number)
    except OSError as error:
        logger.error("could not restore %s: %s", what, error)
    else:
        logger.warning("restored %s, whose deletion was not completed", what)


def _check_unused(session: Session, name: str, number: int) -> None:
    labels = session.scalars(
        select(Label.label).where(Label.name == name, Label.number == number)
    ).all()
    if labels:
        raise VersionInUse(
            f"Version {number} of the model {name!r} has the labels "
            f"{', '.join(map(repr, labels))}; move or delete them first."
        )
    start = Job.spec["start_from"]
    jobs = session.scalars(
        select(Job.id).where(
            Job.state.in_(UNFINISHED),
            start["model"].as_string() == name,
            cast(start["version"].as_string(), BigInteger) == number,
        )
    ).all()
    if jobs:
        raise VersionInUse(
            f"The jobs {', '.join(jobs)} start from version {number} of the model "
            f"{name!r}; cancel the jobs, or wait until they end."
        )
