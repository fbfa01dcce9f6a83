"""Versions of models in the database."""

from sqlalchemy import select

from service.api.models.schemas import Lineage
from service.shared.database import Database
from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.job_state import UNFINISHED


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


def needed_versions(database: Database) -> set[tuple[str, int]]:
    """Returns the versions that labels or unfinished jobs need."""
    labels = select(Label.name, Label.number)
    specs = select(Job.spec).where(Job.state.in_(UNFINISHED))
    with database.reading() as session:
        needed = {(name, number) for name, number in session.execute(labels)}
        starts = [spec.get("start_from") for spec in session.scalars(specs)]
    return needed | {(s["model"], int(s["version"])) for s in starts if s}
