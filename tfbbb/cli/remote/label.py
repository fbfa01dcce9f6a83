"""`tfbbb remote label`."""

from typing import Annotated

import typer

from tfbbb.cli.remote.service import Key, ModelName, Url, service


def label(
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label, e.g. champion.")],
    version: Annotated[int, typer.Argument(help="The version to label.")],
    url: Url = None,
    key: Key = None,
) -> None:
    """Put a label on a version of a model.

    Example: tfbbb remote label houses champion 3
    """
    with service(url, key) as client:
        client.model(model).set_label(label, version)
        typer.echo(f"{label} is version {version} of {model}")
