"""The database of the service: SQLite or PostgreSQL, with the same queries."""

from service.shared.database.audit import Actor, acting
from service.shared.database.creation import DatabaseVersionError, create_tables
from service.shared.database.database import LOST, Database, report_outage, timestamp
from service.shared.database.tables import Base, new_id

__all__ = [
    "LOST",
    "Actor",
    "Base",
    "Database",
    "DatabaseVersionError",
    "acting",
    "create_tables",
    "new_id",
    "report_outage",
    "timestamp",
]
