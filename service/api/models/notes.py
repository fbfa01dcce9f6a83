"""The notes of people about models and versions, in the database."""

import sqlalchemy

from service.shared.database import Database, tables
from service.shared.model_messages import Note

# The number of the note about the model; versions count from 1.
OF_MODEL = 0


def find(database: Database, name: str, number: int) -> Note | None:
    """Returns the note about a version, or None."""
    with database.reading() as session:
        row = session.get(tables.Note, (name, number))
    return None if row is None else Note(title=row.title, text=row.text)


def find_all(
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


def write(database: Database, name: str, number: int, note: Note) -> Note:
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
