"""Prepares the database and the directories before the first process answers."""

from service.api.datasets.store import DatasetStore
from service.api.keys.repository import preset_admin_key
from service.shared.data_directory import write_reserve
from service.shared.database import Database, create_tables
from service.shared.settings import Settings
from service.shared.store import open_store


def prepare(database: Database, settings: Settings) -> None:
    """Creates the tables, and removes the files that dead processes left."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = open_store(settings)
    if not store.is_directory:
        store.models.mkdir(exist_ok=True)
    database.wait()
    create_tables(database)
    if settings.admin_key is not None:
        preset_admin_key(database, settings.admin_key.get_secret_value())
    DatasetStore(settings, database, store).sweep()
    write_reserve(settings)
