"""`tfbbb keys`: reads and writes API keys directly in the service's database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from service.api.keys.credential import Scope
from tfbbb.cli.application import Application, with_options
from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.printing import AsJson, format_time, print_list
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    service_database,
    service_settings,
)

if TYPE_CHECKING:
    from service.shared.database import Database
    from service.shared.database.tables import Key as Row

keys = Application(
    name="keys",
    no_args_is_help=True,
    help="Make, list and revoke the API keys of a service on this machine.\n\n"
    "Example: tfbbb keys create me --scope train",
)


def _check_days(days: float | None) -> float | None:
    if days is not None and not days > 0:
        raise typer.BadParameter(
            f"must be a positive number of days. Received: {days:g}"
        )
    return days


@contextmanager
def _database(
    data_dir: DataDir = None, database_url: DatabaseUrl = None
) -> "Iterator[Database]":
    """Opens the service's database and turns its errors into one sentence."""
    from service.shared.database import Actor, acting
    from service.shared.errors import ServiceError

    settings = service_settings(data_dir=data_dir, database_url=database_url)
    with service_database(settings) as database, acting(Actor("tfbbb keys")):
        try:
            yield database
        except ServiceError as error:
            raise CommandError(str(error)) from None


@keys.command()
@with_options(_database)
def create(
    database: "Database",
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            help="Scope of the key; may be repeated. metrics reads /metrics alone, "
            "predict includes it, and train includes predict; admin allows everything."
        ),
    ],
    days: Annotated[
        float | None,
        typer.Option(
            help="Days until the key expires; never by default.", callback=_check_days
        ),
    ] = None,
) -> None:
    """Create a key and print it once: the service stores only a hash of the key.

    Example: tfbbb keys create nightly --scope predict --days 90
    """
    from service.api.keys.repository import create_key

    seconds = None if days is None else 86400 * days
    _, credential = create_key(database, name, scope, seconds)
    typer.echo(credential)
    echo_next("set TFBBB_KEY to the key, and run tfbbb remote models")


@keys.command("list")
@with_options(_database)
def list_(database: "Database", as_json: AsJson = False) -> None:
    """List the keys, without their secrets.

    Example: tfbbb keys list --json
    """
    from service.api.keys.repository import KeySummary, list_keys

    with database.reading() as session:
        found, now = list_keys(session), database.now(session)
        entries = [
            {
                **KeySummary.model_validate(key).model_dump(mode="json"),
                "state": _state(key, now),
            }
            for key in found
        ]
    print_list(
        entries,
        {
            "id": "id",
            "prefix": "prefix",
            "scopes": lambda key: ", ".join(key["scopes"]),
            "last used": lambda key: _format_last_use(key["last_used_at"]),
            "state": "state",
            "name": "name",
        },
        as_json=as_json,
        if_none="There is no key; create one with `tfbbb keys create`.",
        then="tfbbb keys revoke ID, for a key that nobody needs",
    )


@keys.command()
@with_options(_database)
def revoke(
    database: "Database",
    key: Annotated[str, typer.Argument(help="Id or prefix of the key.")],
) -> None:
    """Revoke a key; the service refuses it from then on.

    Example: tfbbb keys revoke tfbbb-0a1b2c3d
    """
    from service.api.keys.repository import revoke_key

    revoked = revoke_key(database, key)
    typer.echo(f"revoked {revoked.prefix}")


def _state(key: "Row", now: float) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= now else "valid"


def _format_last_use(time: str | None) -> str:
    return "never" if time is None else format_time(time)
