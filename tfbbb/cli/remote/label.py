"""`tfbbb remote label`."""

from typing import Annotated

import typer

from tfbbb.cli.remote.service import Key, ModelName, Url, service


def label(
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label, e.g. champion.")],
    version: Annotated[int, typer.Argument(min=1, help="The version to put it on.")],
    max_nll_increase: Annotated[
        float | None,
        typer.Option(
            help="Refuse a version whose held-out negative log-likelihood per row is "
            "higher than that of the label's by more than this."
        ),
    ] = None,
    max_coverage_drop: Annotated[
        float | None,
        typer.Option(
            help="Refuse one whose 90 % intervals hold a share of the held-out targets "
            "that is further from 0.9 by more than this."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Put it on all the same.")
    ] = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Put a label on a version of a model."""
    with service(url, key) as client:
        client.model(model).set_label(
            label,
            version,
            max_nll_increase=max_nll_increase,
            max_coverage_drop=max_coverage_drop,
            force=force,
        )
        typer.echo(f"{label} is version {version} of {model}")
