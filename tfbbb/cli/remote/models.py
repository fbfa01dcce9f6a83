"""`tfbbb remote models`."""

from typing import Any

import typer

from tfbbb.cli.remote.service import Key, Url, service


def models(url: Url = None, key: Key = None) -> None:
    """List the models of the service."""
    with service(url, key) as client:
        from rich.console import Console
        from rich.table import Table

        listed = client.models()
        if not listed:
            typer.echo("There is no model yet; `tfbbb remote train` makes one.")
            return
        table = Table("model", "task", "target", "versions", box=None)
        for model in listed:
            versions = ", ".join(map(_version, model["versions"]))
            table.add_row(
                model["name"], model["task"] or "", model["target"] or "", versions
            )
        Console(markup=False).print(table)


def _version(status: dict[str, Any]) -> str:
    state = status["state"]
    shown = "" if state == "AVAILABLE" else f" ({state.lower()})"
    return f"{status['version']}{shown}"
