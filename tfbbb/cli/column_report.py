"""What the columns of a table were taken for, as text and as JSON values."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from tfbbb.base.texts import fold_sentences, shown_number
from tfbbb.base.types import JsonObject

if TYPE_CHECKING:
    from tfbbb.tables import Column, Schema

_MOST_COLUMNS = 60
_MOST_CATEGORIES = 4
_MOST_CHARACTERS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def echo_columns(schema: "Schema", most: int | None = _MOST_COLUMNS) -> None:
    """Prints what each column of a training table was taken for."""
    features = list(schema.features)
    shown = features[:most]
    _echo_table([schema.target, *shown], target=schema.target.name)
    if len(features) > len(shown):
        typer.echo(f"  and {len(features) - len(shown)} more features")
    _echo_sentences([schema.target, *shown], schema.left_out)


def echo_table_columns(
    columns: "Sequence[Column]", left_out: Sequence[tuple[str, str]]
) -> None:
    """Prints what the columns of a table were taken for, without a target."""
    _echo_table(columns, target=None)
    _echo_sentences(columns, left_out)


def column_entries(
    columns: "Sequence[Column]",
    left_out: Sequence[tuple[str, str]],
    target: "Column | None" = None,
) -> list[JsonObject]:
    """Returns what columns were taken for, as plain JSON values."""
    entries = [] if target is None else [_entry(target, "target")]
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


def _echo_table(columns: "Sequence[Column]", target: str | None) -> None:
    from tfbbb.cli.listing import print_rows

    print_rows(
        ["column", "kind", "missing", "values"],
        [
            [
                f"{c.name} (target)" if c.name == target else c.name,
                _describe_kind(c),
                c.num_missing or "",
                _describe_values(c),
            ]
            for c in columns
        ],
    )


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
