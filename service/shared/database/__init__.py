"""The database of the service: SQLite or PostgreSQL, with the same queries."""

from service.shared.database.audit import Actor, acting
from service.shared.database.database import (
    LOST,
    Database,
    report_outage,
    timestamp,
)
from service.shared.database.sqlite_file import DatabaseFileError
from service.shared.database.tables import Base, new_id
from service.shared.database.upgrade import DatabaseVersionError, upgrade

__all__ = [
    "LOST",
    "Actor",
    "Base",
    "Database",
    "DatabaseFileError",
    "DatabaseVersionError",
    "acting",
    "new_id",
    "report_outage",
    "timestamp",
    "upgrade",
]
