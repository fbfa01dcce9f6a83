"""Checks that a database and a store of files belong together."""

from service.shared.database import Database
from service.shared.database.tables import Installation
from service.shared.settings import Settings
from service.shared.store import open_store


class InstallationError(Exception):
    """The database describes the files of another store; the message names both."""


def check_installation(database: Database, settings: Settings) -> None:
    """Checks that the database describes the files of this store.

    The first service on a database writes the id of its store into it. A database in
    the data directory itself needs none: both are moved, and restored, as one.
    """
    inside = settings.data_dir.absolute()
    path = database.path
    if settings.store is None and path and path.absolute().is_relative_to(inside):
        return
    store = open_store(settings)
    with database.writing() as session:
        row = session.get_one(Installation, 1, with_for_update=True)
        found = store.identity()
        if row.store_id is None:
            row.store_id, row.store_place = found, store.place
        if row.store_id != found:
            raise InstallationError(
                f"The database {database.name} describes the files in "
                f"{row.store_place}, and not those in {store.place}. Services on one "
                "database need the same object store (TFBBB_STORE), or one data "
                "directory on a disk that all of them mount; else give this service "
                "a database of its own. If the files were copied or restored to "
                f"{store.place}, write {row.store_id} into its file `identity`."
            )
