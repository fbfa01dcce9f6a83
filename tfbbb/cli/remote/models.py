"""`tfbbb remote models`, `label` and `delete`."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_next
from tfbbb.cli.printing import AsJson, print_list
from tfbbb.cli.remote.service import ModelName, check_id, service

if TYPE_CHECKING:
    from tfbbb.client import Client


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
            "target": _format_target,
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


@with_options(service)
def delete(
    client: "Client",
    kind: Annotated[
        Literal["dataset", "job", "version", "label"],
        typer.Argument(help="Kind of the thing."),
    ],
    names: Annotated[
        list[str],
        typer.Argument(
            help="Its id, or the name of its model and the version or the label."
        ),
    ],
) -> None:
    """Delete a dataset, a job, a version or a label.

    A dataset or a job leaves its models, and a label its version. The service keeps a
    dataset that an unfinished job needs, a job that has not finished, and a version
    that a label, a job or `latest` refers to.

    Example: tfbbb remote delete label houses champion
    """
    of_model = kind in ("version", "label")
    if len(names) != 1 + of_model:
        form = f"MODEL {kind.upper()}" if of_model else "ID"
        raise typer.BadParameter(f"write `delete {kind} {form}`.")
    first, last = names[0], names[-1]
    if kind == "dataset":
        client.dataset(check_id(kind)(first)).delete()
    elif kind == "job":
        client.job(check_id(kind)(first)).delete()
    elif kind == "version":
        if not last.isdecimal():
            raise typer.BadParameter(f"{last!r} is not the number of a version.")
        client.model(first).delete_version(int(last))
    else:
        client.model(first).delete_label(last)
    typer.echo(f"deleted {kind} {last}{f' of {first}' if of_model else ''}")


def _format_target(model: JsonObject) -> str:
    target = model["target"]
    return ", ".join(target) if isinstance(target, list) else target or ""


def _format_verdict(model: JsonObject) -> str:
    """Returns for example `2: worse than linear model`."""
    # Services of earlier releases list none.
    newest = model.get("newest") or {}
    said = newest.get("verdict")
    return f"{newest['version']}: {said}" if said else ""


def _format_version(status: JsonObject) -> str:
    broken = " (broken)" if status["state"] == "END" else ""
    return f"{status['version']}{broken}"
