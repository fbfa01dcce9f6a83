"""Versions of models, their reports and notes, in the database and the store."""

from pathlib import Path

import sqlalchemy
from sqlalchemy import select

from service.api.models.schemas import Lineage
from service.shared.database import Database, tables
from service.shared.database.tables import ModelVersion
from service.shared.errors import UnknownReport
from service.shared.model_messages import Note
from tfbbb.export.manifest import MANIFEST_PATH, REPORT_FILE


def find_lineage(database: Database, name: str, number: int) -> Lineage | None:
    """Returns the lineage of a version, or None if it is not recorded yet."""
    with database.reading() as session:
        row = session.get(ModelVersion, (name, number))
    return Lineage.from_row(row) if row is not None else None


def version_times(database: Database) -> dict[tuple[str, int], float]:
    """Returns when each version was made that is not deleted."""
    columns = (ModelVersion.name, ModelVersion.number, ModelVersion.created_at)
    kept = select(*columns).where(ModelVersion.deleted_at.is_(None))
    with database.reading() as session:
        return {(name, number): made for name, number, made in session.execute(kept)}


# The number of the note about the model; versions count from 1.
OF_MODEL = 0


def find_note(database: Database, name: str, number: int) -> Note | None:
    """Returns the note about a version, or None."""
    with database.reading() as session:
        row = session.get(tables.Note, (name, number))
    return None if row is None else Note(title=row.title, text=row.text)


def find_notes(
    database: Database, name: str | None = None
) -> dict[tuple[str, int], Note]:
    """Returns the notes by model and version: of one model, or those of all models."""
    query = sqlalchemy.select(tables.Note)
    if name is None:
        query = query.where(tables.Note.number == OF_MODEL)
    else:
        query = query.where(tables.Note.name == name)
    with database.reading() as session:
        return {
            (row.name, row.number): Note(title=row.title, text=row.text)
            for row in session.scalars(query)
        }


def write_note(database: Database, name: str, number: int, note: Note) -> Note:
    """Replaces a note; removes it if it is empty."""
    with database.writing() as session:
        row = session.get(tables.Note, (name, number))
        if row is None:
            row = tables.Note(name=name, number=number)
        row.title, row.text = note.title.strip(), note.text.strip()
        row.changed_at = database.now(session)
        if row.title or row.text:
            session.add(row)
        elif row in session:
            session.delete(row)
        return Note(title=row.title, text=row.text)


def read_report(models: Path, name: str, version: int) -> bytes:
    """Returns the report of a version that exists, as JSON."""
    manifest = models / name / str(version) / MANIFEST_PATH
    try:
        return manifest.with_name(REPORT_FILE).read_bytes()
    except FileNotFoundError:
        raise UnknownReport(
            "This version has no report: an earlier release trained it, or no table "
            "did. Train the model again for one. "
            f"Received: version {version} of the model {name!r}"
        ) from None
