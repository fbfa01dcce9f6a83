"""`tfbbb remote label`."""

from typing import Annotated

import typer

from tfbbb.cli.remote.service import Key, ModelName, Url, service


def label(
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label, e.g. champion.")],
    version: Annotated[int, typer.Argument(min=1, help="The version to label.")],
    max_nll_increase: Annotated[
        float | None,
        typer.Option(
            help="Refuse the version if its held-out negative log-likelihood per row "
            "exceeds that of the labelled version by more than this."
        ),
    ] = None,
    max_coverage_drop: Annotated[
        float | None,
        typer.Option(
            help="Refuse the version if the coverage of its 90 % intervals is further "
            "from 0.9 than that of the labelled version by more than this."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Move the label without these checks.")
    ] = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Put a label on a version of a model.

    Example: tfbbb remote label houses champion 3
    """
    with service(url, key) as client:
        client.model(model).set_label(
            label,
            version,
            max_nll_increase=max_nll_increase,
            max_coverage_drop=max_coverage_drop,
            force=force,
        )
        typer.echo(f"{label} is version {version} of {model}")
