"""Options and arguments of `tfbbb remote`, and its client."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfbbb.cli.errors import errors_in_one_sentence

if TYPE_CHECKING:
    from tfbbb.client import Client

ID = "[0-9a-f]{24}"


def _find_last_value(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """Returns the last value on the command line, else that of the environment."""
    name = str(parameter.name)
    level: Any = context
    while level is not None:
        source = level.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return value if level is context else level.params[name]
        level = level.parent
    return value


Url = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_URL",
        help="Address of the service, http://127.0.0.1:8000 by default.",
        callback=_find_last_value,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_KEY", help="API key, prefix.secret.", callback=_find_last_value
    ),
]


def _check_job_id(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(ID, text):
        raise typer.BadParameter(
            f"{text!r} is not the id of a job; `tfbbb remote jobs` lists the ids."
        )
    return text


def _check_dataset_id(text: str) -> str:
    if not re.fullmatch(ID, text):
        raise typer.BadParameter(
            f"{text!r} is not the id of a dataset; `tfbbb remote datasets` lists the "
            "ids."
        )
    return text


JobId = Annotated[str, typer.Argument(callback=_check_job_id, help="Id of the job.")]
JobIdOrNone = Annotated[
    str | None,
    typer.Argument(
        callback=_check_job_id, help="Id of the job; the newest job by default."
    ),
]
DatasetId = Annotated[
    str, typer.Argument(callback=_check_dataset_id, help="Id of the dataset.")
]
ModelName = Annotated[str, typer.Argument(help="Name of the model.")]


@contextmanager
def service(url: str | None, key: str | None) -> Iterator["Client"]:
    """Opens a client; an error of the client ends the command with one sentence."""
    with errors_in_one_sentence():
        from tfbbb.client import Client

        with Client(url, key) as client:
            yield client
