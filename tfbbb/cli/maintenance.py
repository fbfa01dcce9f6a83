"""`tfbbb backup` and `prune`."""

from pathlib import Path
from typing import Annotated

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.cli.printing import AsJson, format_time, print_list
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    Models,
    service_database,
    service_settings,
)


def backup(
    destination: Annotated[Path, typer.Argument(help="A new directory.")],
    models: Models = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Copy database, datasets, models and logs, also while the service runs.

    To restore, stop the service and copy each part back to its place: the database
    and the directories datasets and jobs into the data directory, and the contents
    of models into the models directory.

    Example: tfbbb backup /backups/monday
    """
    from service.shared.backup import BackupError, back_up

    settings = service_settings(
        models=models, data_dir=data_dir, database_url=database_url
    )
    try:
        with service_database(settings) as database:
            parts = back_up(database, settings, destination)
    except BackupError as error:
        raise CommandError(str(error)) from None
    typer.echo(f"{destination} holds {', '.join(parts) or 'nothing: all is empty'}")
    if settings.store is not None:
        typer.echo(
            f"The backup does not include {settings.store}. Copy it with the tools "
            "of the storage, after this backup.",
            err=True,
        )
    if not database.is_sqlite:
        typer.echo(
            "The backup does not include the PostgreSQL database. Dump it with "
            "pg_dump before the files are copied, so that the copy has every file "
            "that the dump refers to.",
            err=True,
        )


def prune(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would go; remove nothing.")
    ] = False,
    as_json: AsJson = False,
    models: Models = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Remove what the settings of the service no longer keep, and list it.

    A running service does the same once a day. `docs/operations.md` has the settings.

    Example: tfbbb prune --dry-run
    """
    from service.api.retention import prune as remove
    from service.shared.database import timestamp

    settings = service_settings(
        models=models, data_dir=data_dir, database_url=database_url
    )
    with service_database(settings) as database:
        items = remove(database, settings, dry_run=dry_run)
    print_list(
        [item._asdict() | {"since": timestamp(item.since)} for item in items],
        {
            "kind": "kind",
            "bytes": "num_bytes",
            "since": lambda item: format_time(item["since"]),
            "subject": "subject",
        },
        as_json=as_json,
        if_none="There is nothing to remove.",
        then="tfbbb prune, if this was with --dry-run",
    )
