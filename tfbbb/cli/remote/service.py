"""Which service a command asks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import errors_in_one_sentence

if TYPE_CHECKING:
    from tfbbb.client import Client

Url = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_URL",
        help="Address of the service.",
        show_default="http://127.0.0.1:8000",
    ),
]
Key = Annotated[
    str | None, typer.Option(envvar="TFBBB_KEY", help="API key, prefix.secret.")
]


@contextmanager
def service(url: str | None, key: str | None) -> Iterator["Client"]:
    """A client for the time of a command, whose errors end it with one sentence."""
    with errors_in_one_sentence():
        from tfbbb.client import Client

        with Client(url, key) as client:
            yield client
