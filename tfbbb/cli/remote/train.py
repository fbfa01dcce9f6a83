"""`tfbbb remote train`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.cli.remote.service import Key, Url, service
from tfbbb.cli.remote.upload import upload_with_bar
from tfbbb.cli.remote.watch import follow

if TYPE_CHECKING:
    from tfbbb.client import Client, Dataset


def train(
    data: Annotated[
        str, typer.Argument(help="Table to upload, or the id of a dataset.")
    ],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    name: Annotated[str, typer.Option(help="Model, of which a version is made.")],
    task: Annotated[
        Literal["regression", "classification"] | None,
        typer.Option(help="By default classification of text and booleans."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Column to leave out; may be given again.", metavar="COLUMN"),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of codes that are categories although they look like numbers; "
            "may be given again.",
            metavar="COLUMN",
        ),
    ] = None,
    start_from: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="VERSION",
            help="Version of the model whose posterior is the prior of this one.",
        ),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with what else is to be other than by default: the fields "
            "`model` and `training` of POST /v1/jobs."
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Print the job's id and don't wait.")
    ] = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Train a model by the service, and show how far it is."""
    with service(url, key) as client:
        fields = _read_spec(spec)
        if task is not None:
            fields["task"] = task
        if text:
            fields["text_columns"] = text
        if start_from is not None:
            fields["start_from"] = {"model": name, "version": start_from}
        dataset = _dataset(client, data)
        if ignore:
            fields["features"] = _features(dataset, {target, *ignore})
        job = client.train(dataset, target, name=name, **fields)
        if detach:
            typer.echo(job.id)
        else:
            follow(job)


def _dataset(client: "Client", data: str) -> "Dataset":
    if Path(data).exists() or not data.isalnum():
        return upload_with_bar(client, Path(data), None)
    return client.dataset(data)


def _features(dataset: "Dataset", left_out: set[str]) -> list[str]:
    names = [column["name"] for column in dataset.columns]
    for name in sorted(left_out - set(names)):
        raise CommandError(
            f"There is no column {name!r}; the table has {', '.join(names)}."
        )
    return [name for name in names if name not in left_out]


def _read_spec(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        fields = json.loads(path.read_text())
    except ValueError as error:
        raise CommandError(f"{path} is not JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise CommandError(f"{path} must hold a JSON object.")
    return fields
