"""The truth of the service: SQLite or PostgreSQL, by the same queries."""

from service.database.database import LOST, Database
from service.database.sqlite_file import DatabaseFileError
from service.database.tables import Base, new_id
from service.database.upgrade import NewerDatabaseError, upgrade

__all__ = [
    "LOST",
    "Base",
    "Database",
    "DatabaseFileError",
    "NewerDatabaseError",
    "new_id",
    "upgrade",
]
