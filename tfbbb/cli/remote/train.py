"""`tfbbb remote train`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.application import with_options
from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import Ignore, Spec, Target
from tfbbb.cli.remote.datasets import upload_with_bar
from tfbbb.cli.remote.service import ID, service
from tfbbb.cli.remote.watch import follow

if TYPE_CHECKING:
    from tfbbb.client import Client, Dataset


def _check_model_name(text: str) -> str:
    from tfbbb.base.texts import is_model_name

    if not is_model_name(text):
        raise typer.BadParameter(
            "must be 1 to 128 letters, digits, `_`, `-` and `.`, and begin with a "
            f"letter or digit. Received: {text!r}"
        )
    return text


@with_options(service)
def train(
    client: "Client",
    data: Annotated[
        str, typer.Argument(help="Table to upload, or the id of a dataset.")
    ],
    target: Target,
    name: Annotated[
        str,
        typer.Option(
            callback=_check_model_name,
            help="Name of the model; the job publishes its next version.",
        ),
    ],
    ignore: Ignore = None,
    spec: Spec = None,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach", help="Print the job's id and do not wait for the job."
        ),
    ] = False,
    **options: object,
) -> None:
    """Train a model with the service and show the progress.

    Example: tfbbb remote train houses.csv --target price --name houses
    """
    from tfbbb.cli.job_options import job_fields, leave_out

    fields = job_fields(target, spec, options, name=name)
    dataset = _find_or_upload_dataset(client, data)
    if ignore:
        names = [column["name"] for column in dataset.columns]
        fields = leave_out(fields, names, ignore)
    job = client.train(dataset, name=name, **fields)
    if detach:
        typer.echo(job.id)
        echo_next(f"tfbbb remote watch {job.id}")
    else:
        follow(job)


def _find_or_upload_dataset(client: "Client", data: str) -> "Dataset":
    if Path(data).exists():
        return upload_with_bar(client, Path(data), None)
    if re.fullmatch(ID, data):
        return client.dataset(data)
    raise CommandError(
        f"{data} is neither a file nor the id of a dataset; `tfbbb remote datasets` "
        "lists the ids."
    )
