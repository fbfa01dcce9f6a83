"""`tfbbb remote models`, `label` and `delete`."""

from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.application import Application, with_options
from tfbbb.cli.notes import echo_next
from tfbbb.cli.printing import AsJson, print_list
from tfbbb.cli.remote.service import (
    DatasetId,
    JobId,
    Key,
    ModelName,
    Url,
    service,
    target_names,
)

if TYPE_CHECKING:
    from tfbbb.client import Client

delete = Application(name="delete", no_args_is_help=True)


@with_options(service)
def models(client: "Client", as_json: AsJson = False) -> None:
    """List the models with their versions and labels.

    Example: tfbbb remote models --json
    """
    print_list(
        client.models(),
        {
            "model": "name",
            "task": "task",
            "target": lambda model: ", ".join(filter(None, target_names(model))),
            "versions": lambda model: ", ".join(
                map(_format_version, model["versions"])
            ),
            "labels": lambda model: ", ".join(
                f"{label} {version}" for label, version in model["labels"].items()
            ),
            "verdict": _format_verdict,
        },
        as_json=as_json,
        if_none="There is no model yet; create one with `tfbbb remote train`.",
        then="tfbbb remote predict MODEL TABLE",
    )


@with_options(service)
def label(
    client: "Client",
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label, e.g. champion.")],
    version: Annotated[int, typer.Argument(help="The version to label.")],
) -> None:
    """Put a label on a version of a model.

    Example: tfbbb remote label houses champion 3
    """
    client.model(model).set_label(label, version)
    typer.echo(f"{label} is version {version} of {model}")
    echo_next(f"tfbbb remote predict {model} TABLE --label {label}")


@delete.callback()
def _options(url: Url = None, key: Key = None) -> None:
    """Delete a dataset, a job, a version or a label.

    Example: tfbbb remote delete label houses champion
    """


@delete.command()
@with_options(service)
def dataset(client: "Client", dataset: DatasetId) -> None:
    """Delete a dataset that no unfinished job needs, but not its models.

    Example: tfbbb remote delete dataset 5f1d7e2a9c3b4d6e8f012345
    """
    client.dataset(dataset).delete()
    typer.echo(f"deleted dataset {dataset}")


@delete.command()
@with_options(service)
def job(client: "Client", job: JobId) -> None:
    """Delete a finished job and its log, but not its model.

    Example: tfbbb remote delete job 5f1d7e2a9c3b4d6e8f012345
    """
    client.job(job).delete()
    typer.echo(f"deleted job {job}")


@delete.command()
@with_options(service)
def version(
    client: "Client",
    model: ModelName,
    version: Annotated[int, typer.Argument(min=1, help="The version.")],
) -> None:
    """Delete a version that no label, no job and no `latest` refers to.

    Example: tfbbb remote delete version houses 2
    """
    client.model(model).delete_version(version)
    typer.echo(f"deleted version {version} of {model}")


@delete.command("label")
@with_options(service)
def delete_label(
    client: "Client",
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label.")],
) -> None:
    """Delete a label, but not its version.

    Example: tfbbb remote delete label houses champion
    """
    client.model(model).delete_label(label)
    typer.echo(f"deleted label {label} of {model}")


def _format_verdict(model: JsonObject) -> str:
    """Returns for example `2: worse than linear model`."""
    # Services of earlier releases list none.
    newest = model.get("newest") or {}
    said = newest.get("verdict")
    return f"{newest['version']}: {said}" if said else ""


def _format_version(status: JsonObject) -> str:
    broken = " (broken)" if status["state"] == "END" else ""
    return f"{status['version']}{broken}"
