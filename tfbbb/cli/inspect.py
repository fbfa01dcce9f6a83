"""`tfbbb inspect`, and what columns were taken for as text and as JSON values."""

import json
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.base.texts import fold_sentences, shown_number
from tfbbb.base.types import JsonObject
from tfbbb.cli.notes import echo_next, echo_note
from tfbbb.cli.options import Sheet, Table
from tfbbb.cli.printing import AsJson, print_rows
from tfbbb.tables.column_names import list_names

if TYPE_CHECKING:
    from tfbbb.tables import Column, Schema

_MOST_COLUMNS = 25
_MOST_CATEGORIES = 4
_MOST_CHARACTERS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def inspect(
    data: Table,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Column to predict, to see it as a target; may be repeated."),
    ] = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
    *,
    task: str | None,
    column: list[str] | None,
) -> None:
    """Say what the columns of a table are taken for, without training.

    Example: tfbbb inspect houses.csv --target price
    """
    import pyarrow as pa

    from tfbbb.cli.job_options import parse_columns, validate_fields
    from tfbbb.tables.scan import read_cells
    from tfbbb.tables.schema import infer_features, parse_overrides
    from tfbbb.training.split import find_rows_with_target, infer_schema

    overrides = parse_columns(column or ())
    table = read_cells(data, sheet=sheet, notify=echo_note)
    if not target:
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
            _echo_table(features)
            _echo_sentences(features, left_out)
            echo_next(f"tfbbb inspect {data} --target COLUMN")
        return
    job = validate_fields({"target": target, "task": task, "columns": overrides})
    known, choices = find_rows_with_target(table, job)
    schema = infer_schema(table.filter(pa.array(known)), job, choices)
    if as_json:
        targets = schema.target_columns
        entries = column_entries(schema.features, schema.left_out, targets)
        for entry in entries[: len(targets)]:
            entry["missing"] = int((~known).sum())
        typer.echo(json.dumps(entries, indent=2))
        return
    typer.echo(f"{table.num_rows} rows, {int(known.sum())} with a target")
    echo_schema(schema)
    echo_columns(schema)
    names = " ".join(f"--target {shlex.quote(name)}" for name in schema.target_names)
    echo_next(f"tfbbb train {data} {names} --output saved_models/MODEL")


def echo_schema(schema: "Schema") -> None:
    """Prints the task, the target and the features."""
    kinds = [column.kind for column in schema.features]
    counts = ", ".join(
        f"{kinds.count(kind)} {word}"
        for kind, word in (
            ("numeric", "of numbers"),
            ("date", "of dates"),
            ("categorical", "of text"),
        )
        if kind in kinds
    )
    gaps = sum(column.missing for column in schema.features)
    incomplete = f", {gaps} with missing values" if gaps else ""
    what = f" in {len(schema.classes)} classes" if schema.classes else ""
    columns = "1 column" if len(kinds) == 1 else f"{len(kinds)} columns"
    typer.echo(
        f"{schema.task} of {list_names(schema.target_names)}{what} from {columns} "
        f"({counts}{incomplete})"
    )


def echo_columns(schema: "Schema") -> None:
    """Prints what each column of a training table was taken for."""
    columns = [*schema.target_columns, *schema.features]
    _echo_table(columns, schema.target_names)
    _echo_sentences(columns[:_MOST_COLUMNS], schema.left_out)


def column_entries(
    columns: "Sequence[Column]",
    left_out: Sequence[tuple[str, str]],
    targets: "Sequence[Column]" = (),
) -> list[JsonObject]:
    """Returns what columns were taken for, as plain JSON values."""
    entries = [_entry(column, "target") for column in targets]
    entries += [_entry(column, "feature") for column in columns]
    return entries + [
        {"name": name, "role": "left out", "remarks": [reason]}
        for name, reason in left_out
    ]


def _entry(column: "Column", role: str) -> JsonObject:
    show = _format_date if column.kind == "date" else float
    bounds = {
        name: show(value)
        for name, value in (("low", column.low), ("high", column.high))
        if value is not None
    }
    texts = [text for text in column.categories if text]
    return {
        "name": column.name,
        "role": role,
        "kind": column.meaning,
        "notation": None if column.notation is None else column.notation.to_dict(),
        "missing": column.num_missing,
        **bounds,
        **({"categories": texts} if texts else {}),
        "remarks": list(column.remarks),
    }


def _echo_table(columns: "Sequence[Column]", targets: Sequence[str] = ()) -> None:
    print_rows(
        ["column", "kind", "missing", "values"],
        [
            [
                f"{c.name} (target)" if c.name in targets else c.name,
                _describe_kind(c),
                c.num_missing or "",
                _describe_values(c),
            ]
            for c in columns[:_MOST_COLUMNS]
        ],
    )
    if (more := len(columns) - _MOST_COLUMNS) > 0:
        typer.echo(f"  and {more} more, which `tfbbb inspect --json` shows")


def _echo_sentences(
    columns: "Sequence[Column]", left_out: Sequence[tuple[str, str]]
) -> None:
    said = [
        f"Column {column.name!r}: {remark}"
        for column in columns
        for remark in column.remarks
    ]
    said += [f"Left out {name!r}: {reason}" for name, reason in left_out]
    for sentence in fold_sentences(said):
        typer.echo(sentence)


def _describe_kind(column: "Column") -> str:
    notation = column.notation
    described = "" if notation is None else notation.describe()
    return f"{column.meaning} ({described})" if described else column.meaning


def _describe_values(column: "Column") -> str:
    if column.kind == "categorical":
        if column.buckets:
            return f"{column.buckets} buckets"
        texts = [text for text in column.categories if text]
        shown = [
            text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
            for text in texts[:_MOST_CATEGORIES]
        ]
        more = len(texts) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")
    if column.low is None or column.high is None:
        return ""
    if column.meaning == "boolean":
        return "no, yes" if column.low < column.high else "always the same"
    if column.kind == "date":
        return f"{_format_date(column.low)} to {_format_date(column.high)}"
    return f"{shown_number(column.low, 6)} to {shown_number(column.high, 6)}"


def _format_date(seconds: float) -> str:
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:.0f} s since 1970"
    return moment.isoformat().removesuffix("+00:00").removesuffix("T00:00:00")
