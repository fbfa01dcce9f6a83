from service.database import Database
from service.database.tables import ModelVersion
from service.models.schemas import Lineage


def lineage_of(database: Database, name: str, number: int) -> Lineage | None:
    """Where a version comes from, if it has been published or adopted."""
    with database.reading() as session:
        row = session.get(ModelVersion, (name, number))
    return Lineage.of(row) if row is not None else None
