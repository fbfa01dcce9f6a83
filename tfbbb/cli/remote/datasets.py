"""`tfbbb remote upload` and `datasets`."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_next
from tfbbb.cli.printing import AsJson, Limit, format_time, print_list
from tfbbb.cli.remote.service import service

if TYPE_CHECKING:
    from tfbbb.client import Client, Dataset


@with_options(service)
def upload(
    client: "Client",
    data: Annotated[
        Path, typer.Argument(help="Table: CSV, gzipped CSV, Parquet or Arrow IPC.")
    ],
    name: Annotated[
        str | None,
        typer.Option(help="Name of the dataset; that of the file by default."),
    ] = None,
) -> None:
    """Upload a table and print the id of its dataset.

    Example: tfbbb remote upload houses.csv --name houses
    """
    dataset = upload_with_bar(client, data, name)
    typer.echo(dataset.id)
    echo_next(f"tfbbb remote train {dataset.id} --target COLUMN --name MODEL")


def upload_with_bar(client: "Client", data: Path, name: str | None) -> "Dataset":
    """Uploads a file with a progress bar, and prints the remarks about its columns."""
    from rich.progress import DownloadColumn

    from tfbbb.cli.progress import terminal_bar

    with terminal_bar("upload", DownloadColumn()) as progress:
        task = progress.add_task("", total=None)

        def show(sent: int, total: int) -> None:
            progress.update(task, completed=sent, total=total)

        dataset = client.upload(data, name=name, progress=show)
    typer.echo(
        f"{dataset.name}: {dataset.num_rows} rows, {len(dataset.columns)} columns",
        err=True,
    )
    for problem in dataset.problems:
        typer.echo(f"Warning: {problem}", err=True)
    for column in dataset.columns:
        for remark in column["remarks"] or ():
            typer.echo(f"Warning: column {column['name']!r}: {remark}", err=True)
    return dataset


@with_options(service)
def datasets(client: "Client", limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the datasets, newest first.

    Example: tfbbb remote datasets --limit 5
    """
    print_list(
        [dataset.details for dataset in islice(client.datasets(), limit)],
        {
            "dataset": "id",
            "name": "name",
            "rows": "num_rows",
            "bytes": "num_bytes",
            "uploaded": lambda dataset: format_time(dataset["created_at"]),
        },
        as_json=as_json,
        if_none="There is no dataset; create one with `tfbbb remote upload`.",
        then="tfbbb remote train DATASET --target COLUMN --name MODEL",
    )
