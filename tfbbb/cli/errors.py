"""Errors of commands: one sentence on stderr for errors that the user can fix."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tfbbb.base.tensorflow_startup import MissingTensorFlowError, has_tensorflow

# The packages of the extra `service`; see pyproject.toml.
_SERVICE_PACKAGES = frozenset(
    {
        "fastapi",
        "fastapi_swagger",
        "httptools",
        "itsdangerous",
        "prometheus_client",
        "psutil",
        "psycopg",
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "uvloop",
    }
)


# Of a training whose model predicts rows left out no better than a constant.
EXIT_LEARNED_NOTHING = 3
# Of a table with a column of which the model can read no cell.
EXIT_USELESS_COLUMN = 3


class CommandError(Exception):
    """The command cannot do its work; the message is one sentence."""


@contextmanager
def errors_in_one_sentence() -> Iterator[None]:
    """Turns an error that the user can fix into a sentence on stderr and exit code 1.

    Any other error is a bug in the program and keeps its traceback.
    """
    try:
        yield
    except Exception as error:
        if not _can_user_fix(error):
            raise
        typer.echo(f"Error: {_format_sentence(error)}", err=True)
        raise typer.Exit(1) from None


def _can_user_fix(error: Exception) -> bool:
    if _lacks_service(error) or _refuses_system(error):
        return True
    if isinstance(error, MissingTensorFlowError):
        return True
    from tfbbb.client.errors import ClientError
    from tfbbb.export.manifest import InputError, ManifestError
    from tfbbb.tables.table_error import TableError
    from tfbbb.training.spec import SpecError

    files = TableError | InputError | ManifestError
    if isinstance(error, CommandError | ClientError | SpecError | files):
        return True
    # For example a full disk or a missing permission. Not EPIPE: typer exits silently
    # when a reader such as `head` closes the pipe.
    return isinstance(error, OSError) and error.errno not in (None, errno.EPIPE)


def _lacks_service(error: Exception) -> bool:
    """Whether a package of the extra `service` is not installed."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return name is not None and name.partition(".")[0] in _SERVICE_PACKAGES


def _refuses_system(error: Exception) -> bool:
    """Whether the service does not run on this operating system."""
    return isinstance(error, ImportError) and error.name == "service"


def _format_sentence(error: Exception) -> str:
    if _lacks_service(error):
        distribution = "tfbbb" if has_tensorflow() else "tfbbb-predict"
        return (
            "This command needs the packages of the service; install them with "
            f"`pip install '{distribution}[service]'`. Received: {error}."
        )
    if isinstance(error, OSError) and error.strerror is not None:
        where = f"{os.fspath(error.filename)}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return " ".join(str(error).split())
