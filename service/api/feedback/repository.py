"""Feedback in the database."""

from collections import defaultdict
from pathlib import Path

from sqlalchemy import select

from service.shared.database import Database
from service.shared.database.tables import Feedback, ModelVersion
from service.shared.errors import UnknownModel
from service.shared.model_messages import ScoredRows


def count(
    database: Database,
    models: Path,
    name: str,
    scored: ScoredRows,
) -> None:
    """Counts scored rows in one transaction, all of them or none."""
    # Imported late: NumPy would slow the start of the service.
    from service.api.feedback import running
    from tfbbb.judging.drift_reference import DriftReference

    # Read before the transaction: the disk may be slow, and others wait for the locks.
    reference = None
    if find(database, name, scored.version) is None:
        reference = DriftReference.read(models / name / str(scored.version))
    with database.writing() as session:
        now = database.now(session)
        # Serialises the feedback about the version.
        version = session.get(
            ModelVersion, (name, scored.version), with_for_update=True
        )
        if version is None or version.deleted_at is not None:
            raise UnknownModel(
                f"Version {scored.version} of the model {name!r} was deleted."
            )
        row = session.get(Feedback, (name, scored.version), populate_existing=True)
        if row is None:
            row = Feedback(name=name, number=scored.version, started_at=now)
            running.start(row, reference, scored)
            session.add(row)
        running.add(row, scored, now)
        row.updated_at = now


def find(database: Database, name: str, number: int) -> Feedback | None:
    """Returns the feedback about a version, or None."""
    with database.reading() as session:
        return session.get(Feedback, (name, number))


def find_all(database: Database, name: str) -> dict[int, Feedback]:
    """Returns the feedback about each version of a model, by number."""
    with database.reading() as session:
        rows = session.scalars(select(Feedback).where(Feedback.name == name))
        return {row.number: row for row in rows}


def find_drifted(
    database: Database, name: str | None = None
) -> defaultdict[str, list[int]]:
    """Returns the versions with an alarm of drift, of one model or of all, by model."""
    query = select(Feedback.name, Feedback.number, Feedback.drift)
    if name is not None:
        query = query.where(Feedback.name == name)
    found = defaultdict[str, list[int]](list)
    with database.reading() as session:
        for model, number, drift in session.execute(query.order_by(Feedback.number)):
            if drift["alarm_row"] is not None:
                found[model].append(number)
    return found
