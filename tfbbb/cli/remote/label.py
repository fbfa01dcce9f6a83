"""`tfbbb remote label`."""

from typing import Annotated

import typer

from tfbbb.cli.remote.service import Key, ModelName, Url, service


def label(
    model: ModelName,
    label: Annotated[str, typer.Argument(help="The label, e.g. champion.")],
    versions: Annotated[
        list[str],
        typer.Argument(
            metavar="VERSION...",
            help="The version to label, or two with their shares of the requests: "
            "3=0.9 4=0.1.",
        ),
    ],
    shadow: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="A version that predicts the rows too, after the answer.",
        ),
    ] = None,
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
    """Put a label on a version of a model, or on two that share its requests.

    Example: tfbbb remote label houses champion 3
    """
    target = _read_versions(versions)
    with service(url, key) as client:
        client.model(model).set_label(
            label,
            target,
            shadow=shadow,
            max_nll_increase=max_nll_increase,
            max_coverage_drop=max_coverage_drop,
            force=force,
        )
        found = client.model(model).describe_labels()[label]
        text = f"{label} is version {found['version']} of {model}"
        if (canary := found["canary"]) is not None:
            share = f"{100 * canary['weight']:g} %"
            text += f", version {canary['version']} answers {share} of its requests"
        if found["shadow"] is not None:
            text += f", version {found['shadow']['version']} is its shadow"
        typer.echo(text)


def _read_versions(given: list[str]) -> int | dict[int, float]:
    """Reads `["3"]` as 3, and `["3=0.9", "4=0.1"]` as their shares by version."""
    try:
        if len(given) == 1:
            return int(given[0])
        pairs = [text.split("=") for text in given]
        return {int(version): float(share) for version, share in pairs}
    except ValueError:
        raise typer.BadParameter(
            "give one version, or two with their shares such as 3=0.9 4=0.1. "
            f"Received: {' '.join(given)}",
            param_hint="VERSION...",
        ) from None
