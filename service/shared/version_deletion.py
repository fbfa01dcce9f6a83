"""Deletes versions safely, also if the process crashes in between."""

import contextlib
import logging
import shutil
from pathlib import Path

from sqlalchemy import BigInteger, cast, or_, select
from sqlalchemy.orm import Session

from service.shared.database import Database
from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.errors import VersionInUse
from service.shared.job_state import UNFINISHED
from service.shared.versions import STAGING

logger = logging.getLogger(__name__)

_PREFIX = "deleted"


def delete_version(database: Database, models: Path, name: str, number: int) -> None:
    """Moves a version aside, so that `finish_deletions` can remove its files.

    Renames the directory before the transaction commits. If the process stops in
    between, `finish_deletions` restores the version.

    Raises:
        VersionInUse: If a label points at the version, or an unfinished job starts
            from it.
    """
    with database.writing() as session:
        version = session.get(ModelVersion, (name, number), with_for_update=True)
        _check_unused(session, name, number)
        trash = models / STAGING / f"{_PREFIX}.{number}.{name}"
        trash.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (models / name / str(number)).rename(trash)
        if version is not None and version.deleted_at is None:
            version.deleted_at = database.now(session)


def finish_deletions(database: Database, models: Path) -> None:
    """Removes the files of deleted versions; restores those whose deletion failed.

    Any process may call this at any time.
    """
    for trash in models.glob(f"{STAGING}/{_PREFIX}.*.*"):
        _, number, name = trash.name.split(".", 2)
        with database.writing() as session:
            # Waits for a process that is deleting the version.
            version = session.get(
                ModelVersion, (name, int(number)), with_for_update=True
            )
            if version is not None and version.deleted_at is None:
                _put_back(trash, models / name / number)
                continue
        shutil.rmtree(trash, ignore_errors=True)


def _put_back(trash: Path, place: Path) -> None:
    try:
        trash.rename(place)
    except OSError as error:
        logger.error("could not move %s back to %s: %s", trash, place, error)
    else:
        logger.warning("restored %s, whose deletion was not completed", place)


def _check_unused(session: Session, name: str, number: int) -> None:
    labels = session.scalars(
        select(Label.label).where(
            Label.name == name,
            or_(Label.number == number, Label.canary == number, Label.shadow == number),
        )
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
