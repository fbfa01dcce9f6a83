"""Versions of models in the database."""

from sqlalchemy import select

from service.api.models.schemas import Lineage
from service.shared.database import Database
from service.shared.database.tables import ModelVersion


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
