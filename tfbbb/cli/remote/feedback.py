"""`tfbbb remote feedback`."""

from typing import TYPE_CHECKING

import typer

from tfbbb.base.types import JsonObject
from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_note
from tfbbb.cli.options import Sheet, Table
from tfbbb.cli.remote.service import (
    Label,
    ModelName,
    Version,
    check_version_or_label,
    read_manifest,
    service,
)

if TYPE_CHECKING:
    from tfbbb.client import Client


@with_options(service)
def feedback(
    client: "Client",
    model: ModelName,
    data: Table,
    sheet: Sheet = None,
    version: Version = None,
    label: Label = None,
) -> None:
    """Tell the service what came true: the targets of a table's rows.

    Rows without a target to use are left out. Prints the running figures of the version
    beside its held-out ones, and whether the rows drift. The same table counts once for
    each version, so an interrupted command can be repeated.

    Example: tfbbb remote feedback houses sold.csv
    """
    check_version_or_label(version, label)
    import pyarrow as pa

    from tfbbb.cli.table_targets import name_classes, read_usable_targets
    from tfbbb.tables.plain_values import typed_table
    from tfbbb.tables.scan import read_cells

    remote_model = client.model(model)
    manifest, texts = read_manifest(remote_model, version, label)
    table = typed_table(read_cells(data, sheet=sheet, notify=echo_note), texts)
    found = read_usable_targets(table, manifest)
    table = table.filter(pa.array(found.known))
    targets = name_classes(found.values[found.known], manifest.classes)
    scored = remote_model.feedback(table, targets, version=version, label=label)
    typer.echo(f"{len(targets)} rows scored version {scored} of {model}", err=True)
    _echo(remote_model.describe_feedback(scored))


def _echo(found: JsonObject) -> None:
    typer.echo(f"feedback about {found['num_rows']} rows:")
    for name, figure in found["figures"].items():
        error, held_out = figure["standard_error"], figure["held_out"]
        text = f"  {name}: {figure['mean']:.4g}"
        text += "" if error is None else f" ± {error:.2g}"
        typer.echo(text + ("" if held_out is None else f", held out {held_out:.4g}"))
    drift = found["drift"]
    row = drift["alarm_row"]
    typer.echo(
        "no drift" if row is None else f"drift: alarm at row {row} of the feedback"
    )
