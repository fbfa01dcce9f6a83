"""Which service a command asks, and of what."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfbbb.cli.errors import errors_in_one_sentence

if TYPE_CHECKING:
    from tfbbb.client import Client

ID = "[0-9a-f]{24}"


def _nearest(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """The value that was given last on the command line, else the environment's."""
    name = str(parameter.name)
    at: Any = context
    while at is not None:
        source = at.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return value if at is context else at.params[name]
        at = at.parent
    return value


Url = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_URL",
        help="Address of the service, http://127.0.0.1:8000 by default.",
        callback=_nearest,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(envvar="TFBBB_KEY", help="API key, prefix.secret.", callback=_nearest),
]


def _job_id(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(ID, text):
        raise typer.BadParameter(
            f"{text!r} is no id of a job; `tfbbb remote jobs` lists them."
        )
    return text


def _dataset_id(text: str) -> str:
    if not re.fullmatch(ID, text):
        raise typer.BadParameter(
            f"{text!r} is no id of a dataset; `tfbbb remote datasets` lists them."
        )
    return text


JobId = Annotated[str, typer.Argument(callback=_job_id, help="Id of the job.")]
JobIdOrNone = Annotated[
    str | None,
    typer.Argument(callback=_job_id, help="Id of a job; the newest one by default."),
]
DatasetId = Annotated[
    str, typer.Argument(callback=_dataset_id, help="Id of the dataset.")
]
ModelName = Annotated[str, typer.Argument(help="Name of the model.")]


@contextmanager
def service(url: str | None, key: str | None) -> Iterator["Client"]:
    """A client for the time of a command, whose errors end it with one sentence."""
    with errors_in_one_sentence():
        from tfbbb.client import Client

        with Client(url, key) as client:
            yield client
