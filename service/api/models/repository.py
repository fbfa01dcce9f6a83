"""Versions of models and their reports, in the database and the store."""

from pathlib import Path

from sqlalchemy import select

from service.api.models.schemas import Lineage
from service.shared.database import Database
from service.shared.database.tables import ModelVersion
from service.shared.errors import UnknownReport
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
