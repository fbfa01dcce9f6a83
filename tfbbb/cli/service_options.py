"""Options and settings of commands that open a service's files and database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError

if TYPE_CHECKING:
    from service.shared.database import Database
    from service.shared.settings import Settings

Models = Annotated[
    Path | None,
    typer.Option(
        envvar="TFBBB_MODELS",
        help="Models directory, with NAME/VERSION.",
        show_default="saved_models",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        envvar="TFBBB_DATA_DIR",
        help="Directory of datasets, jobs and the database.",
        show_default=".tfbbb",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_DATABASE_URL",
        help="Database, postgresql://... or sqlite:///PATH.",
        show_default="tfbbb.sqlite3 in the data directory",
    ),
]


def service_settings(**options: object) -> "Settings":
    """Returns settings of the environment; options that are not None override them."""
    from service.shared.settings import Settings, SettingsError

    given = {
        f"TFBBB_{name.upper()}": str(value)
        for name, value in options.items()
        if value is not None
    }
    try:
        return Settings.from_environment({**os.environ, **given})
    except SettingsError as error:
        raise CommandError(str(error)) from None


@contextmanager
def service_database(
    settings: "Settings", *, starting: bool = False
) -> "Iterator[Database]":
    """Opens the database of a service."""
    from sqlalchemy.exc import ArgumentError, DBAPIError

    from service.shared.database import Database, DatabaseVersionError, create_tables

    try:
        database = Database(settings.effective_database_url)
    except (ArgumentError, ValueError) as error:
        raise CommandError(str(error)) from None
    try:
        if starting:
            database.wait()
        else:
            _check_exists(database)
        create_tables(database)
        yield database
    except DBAPIError as error:
        raise CommandError(f"The database does not answer: {error.orig}") from None
    except DatabaseVersionError as error:
        raise CommandError(str(error)) from None
    finally:
        database.close()


def _check_exists(database: "Database") -> None:
    """Raises `CommandError` unless the database has the tables of a service."""
    from service.shared.database.creation import tables_version

    path = database.path
    if (path is None or path.is_file()) and tables_version(database) is not None:
        return
    if path is None:
        raise CommandError(
            f"The database {database.name} has no tables of a service: start the "
            "service once with `tfbbb serve`, and set TFBBB_ADMIN_KEY to the first "
            "admin key."
        )
    raise CommandError(
        f"There is no service's database at {path}: name the data directory with "
        "--data-dir, or create the database with `tfbbb serve`."
    )
