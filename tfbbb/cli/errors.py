"""What a user meets when something is wrong with files or arguments."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer

# The packages of the extra `service`; see pyproject.toml.
_OF_THE_SERVICE = frozenset(
    {
        "alembic",
        "fastapi",
        "fastapi_swagger",
        "httptools",
        "prometheus_client",
        "psutil",
        "psycopg",
        "python_multipart",
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "uvloop",
    }
)


class CommandError(Exception):
    """A command can't do what was asked; the message is one sentence."""


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Turns errors that a user can mend into a sentence on stderr and exit code 1.

    Anything else is a fault of the program and keeps its traceback.
    """
    try:
        yield
    except Exception as error:
        if not _is_users(error):
            raise
        typer.echo(f"Error: {_sentence(error)}", err=True)
        raise typer.Exit(1) from None


def _is_users(error: Exception) -> bool:
    if _lacks_service(error):
        return True
    from tfbbb.client.errors import ClientError
    from tfbbb.data.table_error import TableError
    from tfbbb.export.input_error import InputError
    from tfbbb.export.manifest import ManifestError
    from tfbbb.training.spec import SpecError

    files = TableError | InputError | ManifestError
    users = CommandError | ClientError | SpecError | files
    if isinstance(error, users):
        return True
    # A full disk, a path without permission; but not a reader such as `head` that has
    # read enough, which typer passes over in silence.
    return isinstance(error, OSError) and error.errno not in (None, errno.EPIPE)


def _lacks_service(error: Exception) -> bool:
    """Whether a package of the extra `service` is not installed."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return name is not None and name.partition(".")[0] in _OF_THE_SERVICE


def _sentence(error: Exception) -> str:
    if _lacks_service(error):
        return (
            "This command needs the packages of the service; install them with "
            f"`pip install 'tfbbb[service]'`. Received: {error}."
        )
    if isinstance(error, OSError) and error.strerror is not None:
        where = f"{os.fspath(error.filename)}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return " ".join(str(error).split())
