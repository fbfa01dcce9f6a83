"""A database with versions of models, without their files."""

from contextlib import contextmanager

from service.shared.database import Database, create_tables
from service.shared.database.tables import ModelVersion


@contextmanager
def database_with_versions(url, name, *numbers):
    """Opens a database with its tables and some versions of a model."""
    database = Database(url)
    create_tables(database)
    add_versions(database, name, *numbers)
    yield database
    database.close()


def add_versions(database, name, *numbers):
    """Records versions of a model."""
    with database.writing() as session:
        for number in numbers:
            version = ModelVersion(
                name=name, number=number, digest="0" * 64, lineage={}, created_at=0.0
            )
            session.add(version)
