"""`tfbbb remote delete`."""

from typing import Annotated

import typer

from tfbbb.cli.application import Application
from tfbbb.cli.remote.service import DatasetId, JobId, Key, ModelName, Url, service

delete = Application(name="delete", no_args_is_help=True)


@delete.callback()
def _options(url: Url = None, key: Key = None) -> None:
    """Delete a dataset, a job, a version or a label.

    Example: tfbbb remote delete label houses champion
    """


@delete.command()
def dataset(dataset: DatasetId, url: Url = None, key: Key = None) -> None:
    """Delete a dataset that no unfinished job needs, but not its models.

    Example: tfbbb remote delete dataset 5f1d7e2a9c3b4d6e8f012345
    """
    with service(url, key) as client:
        client.dataset(dataset).delete()
    typer.echo(f"deleted dataset {dataset}")


@delete.command()
def job(job: JobId, url: Url = None, key: Key = None) -> None:
    """Delete a finished job and its log, but not its model.

    Example: tfbbb remote delete job 5f1d7e2a9c3b4d6e8f012345
    """
    with service(url, key) as client:
        client.job(job).delete()
    typer.echo(f"deleted job {job}")


@delete.command()
def version(
    model: ModelName,
    version: Annotated[int, typer.Argument(min=1, help="The version.")],
    url: Url = None,
    key: Key = None,
) -> None:
    """Delete a version that no label, no job and no `latest` refers to.

    Example: tfbbb remote delete version houses 2
    """
    with service(url, key) as client:
        client.model(model).delete_version(version)
    typer.echo(f"deleted version {version} of {model}")


@delete.command()
def label(
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label.")],
    url: Url = None,
    key: Key = None,
) -> None:
    """Delete a label, but not its version.

    Example: tfbbb remote delete label houses champion
    """
    with service(url, key) as client:
        client.model(model).delete_label(label)
    typer.echo(f"deleted label {label} of {model}")
