"""`tfbbb prune`."""

from typing import Annotated

import typer

from tfbbb.cli.errors import errors_in_one_sentence
from tfbbb.cli.listing import AsJson, format_time, print_list
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    Models,
    service_database,
    service_settings,
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
    with errors_in_one_sentence():
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
                "kind": lambda item: item["kind"],
                "bytes": lambda item: item["num_bytes"],
                "since": lambda item: format_time(item["since"]),
                "subject": lambda item: item["subject"],
            },
            as_json=as_json,
            if_none="There is nothing to remove.",
        )
