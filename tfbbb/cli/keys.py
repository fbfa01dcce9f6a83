"""`tfbbb keys`: the keys of a service, directly in its database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from service.api.keys.scope import Scope
from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.listing import put_rows
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    service_database,
    service_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from service.shared.database import Database

# The largest count that the database holds.
_MOST = 2**31 - 1

keys = typer.Typer(
    name="keys",
    no_args_is_help=True,
    help="Make, list and revoke the API keys of a service on this machine.",
)


def _some(days: float | None) -> float | None:
    if days is not None and not days > 0:
        raise typer.BadParameter(f"a key needs some time. Received: {days:g}")
    return days


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[
        list[Scope],
        typer.Option(help="What it allows: train includes predict, admin everything."),
    ],
    days: Annotated[
        float | None,
        typer.Option(help="Days after which it expires.", callback=_some),
    ] = None,
    key_stdin: Annotated[
        bool,
        typer.Option(
            "--key-stdin",
            help="Take a key of your own, `prefix.secret` of 128 random bits, from "
            "standard input.",
        ),
    ] = False,
    max_datasets: Annotated[
        int | None,
        typer.Option(min=0, max=_MOST, help="Most datasets that it may own."),
    ] = None,
    max_dataset_bytes: Annotated[
        int | None, typer.Option(min=0, max=2**53, help="Most bytes in them.")
    ] = None,
    max_queued_jobs: Annotated[
        int | None,
        typer.Option(min=0, max=_MOST, help="Most of its jobs that may wait."),
    ] = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print it, this once: only a hash of it is kept.

    Whoever makes it says what it allows; --scope may be given repeatedly.
    """
    with _database(data_dir, database_url) as database:
        from service.api.keys.credential import Credential
        from service.api.keys.repository import add_key

        credential = Credential.preset(_given()) if key_stdin else Credential.generate()
        with database.writing() as session:
            now = database.now(session)
            add_key(
                database,
                session,
                credential,
                name,
                scope,
                expires_at=None if days is None else now + 86400 * days,
                max_datasets=max_datasets,
                max_dataset_bytes=max_dataset_bytes,
                max_queued_jobs=max_queued_jobs,
            )
    typer.echo(f"made {credential.prefix}" if key_stdin else credential.text)


@keys.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """List the keys, without their secrets."""
    with _database(data_dir, database_url) as database:
        from service.api.keys.repository import list_keys

        with database.reading() as session:
            found, now = list_keys(session), database.now(session)
        rows = []
        for key in found:
            over = key.expires_at is not None and key.expires_at <= now
            state = "revoked" if key.revoked_at else "expired" if over else "good"
            scopes, used = ", ".join(key.scopes), _date(key.last_used_at)
            rows.append((key.id, key.prefix, scopes, used, state, key.name))
        put_rows(("id", "prefix", "scopes", "last used", "state", "name"), rows)


@keys.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The id or the prefix of a key.")],
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Refuse a key from now on."""
    with _database(data_dir, database_url) as database:
        from service.api.keys.repository import list_keys, revoke_key
        from service.shared.errors import ServiceError

        try:
            with database.writing() as session:
                by_prefix = {found.prefix: found.id for found in list_keys(session)}
                revoked = revoke_key(database, session, by_prefix.get(key, key))
        except ServiceError as error:
            raise CommandError(str(error)) from None
    typer.echo(f"revoked {revoked.prefix}")


@contextmanager
def _database(
    data_dir: "Path | None", database_url: str | None
) -> "Iterator[Database]":
    """The database of the service; what is wrong is said in one sentence."""
    with errors_in_one_sentence():
        from service.api.keys.credential import CredentialError

        settings = service_settings(data_dir=data_dir, database_url=database_url)
        try:
            with service_database(settings) as database:
                yield database
        except CredentialError as error:
            raise CommandError(str(error)) from None


def _given() -> str:
    """A key that no list of processes and no shell's history shows."""
    import getpass
    import sys

    if sys.stdin.isatty():
        return getpass.getpass("Key, `prefix.secret`: ").strip()
    return sys.stdin.readline().strip()


def _date(seconds: float | None) -> str:
    import datetime

    if seconds is None:
        return "never"
    return f"{datetime.datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
