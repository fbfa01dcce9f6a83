"""`tfbbb inspect`."""

import json
from typing import Annotated

import typer

from tfbbb.cli.errors import errors_in_one_sentence
from tfbbb.cli.listing import AsJson
from tfbbb.cli.prediction_options import Sheet, Table, echo_note


def inspect(
    data: Table,
    target: Annotated[
        str | None, typer.Option(help="Column to predict, to see it as a target.")
    ] = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    *,
    task: str | None,
    text: list[str] | None,
    column: list[str] | None,
) -> None:
    """Say what the columns of a table are taken for, without training.

    Example: tfbbb inspect houses.csv --target price
    """
    with errors_in_one_sentence():
        import pyarrow as pa

        from tfbbb.cli.column_report import (
            column_entries,
            echo_columns,
            echo_table_columns,
        )
        from tfbbb.cli.job_fields import validate_fields
        from tfbbb.cli.job_options import parse_columns
        from tfbbb.cli.report import echo_schema
        from tfbbb.tables.scan import read_cells
        from tfbbb.tables.schema import infer_features, parse_overrides
        from tfbbb.training.rows_with_target import (
            find_rows_with_target,
            infer_schema,
        )

        overrides = {**dict.fromkeys(text or (), "text"), **parse_columns(column or ())}
        table = read_cells(data, sheet=sheet, notify=echo_note)
        if target is None:
            features, left_out = infer_features(
                table,
                table.column_names,
                parse_overrides(overrides, table.column_names),
                refuses=False,
            )
            if as_json:
                typer.echo(json.dumps(column_entries(features, left_out), indent=2))
            else:
                typer.echo(f"{table.num_rows} rows")
                echo_table_columns(features, left_out)
            return
        job = validate_fields({"target": target, "task": task, "columns": overrides})
        known, choice = find_rows_with_target(table, job)
        schema = infer_schema(table.filter(pa.array(known)), job, choice)
        if as_json:
            entries = column_entries(schema.features, schema.left_out, schema.target)
            entries[0]["missing"] = int((~known).sum())
            typer.echo(json.dumps(entries, indent=2))
            return
        typer.echo(f"{table.num_rows} rows, {int(known.sum())} with a target")
        echo_schema(schema)
        echo_columns(schema, most=None)
