"""`tfbbb remote retention`."""

import json
from typing import Annotated

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.listing import AsJson, format_time, print_rows
from tfbbb.cli.remote.service import Key, Url, service


def retention(
    apply: Annotated[
        bool, typer.Option("--apply", help="Remove it now, not within the hour.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Show what the settings of the service no longer keep; needs the scope admin.

    Removes nothing without --apply. `docs/operations.md` has the settings.

    Example: tfbbb remote retention
    """
    with service(url, key) as client:
        kinds = client.retention(apply=apply)
    if as_json:
        typer.echo(json.dumps(kinds, indent=2))
        return
    headings = ["kind", "kept", "removed" if apply else "would go", "bytes", "oldest"]
    print_rows(headings, map(_row, kinds))
    for kind in kinds:
        for thing in kind["things"]:
            typer.echo(
                f"{kind['kind']}: {thing['subject']}, {thing['num_bytes']} bytes"
            )


def _row(kind: JsonObject) -> list[object]:
    limits = [
        f"{name}={value:.15g}"
        for name, value in kind["settings"].items()
        if value is not None
    ]
    oldest = format_time(kind["things"][0]["since"]) if kind["things"] else None
    number = "not known" if kind["problem"] else kind["num_things"]
    return [kind["kind"], ", ".join(limits) or "all", number, kind["num_bytes"], oldest]
