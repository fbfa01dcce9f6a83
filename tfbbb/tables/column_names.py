"""Checks of column names, with suggestions for misspelt names."""

import difflib
from collections import Counter
from collections.abc import Sequence

from tfbbb.tables.column_source import ColumnSource
from tfbbb.tables.table_error import TableError


def check_column_names(names: Sequence[str], *, where: str = "") -> None:
    """Raises a `TableError` unless the names are text, non-empty and unique."""
    for number, name in enumerate(names, start=1):
        if "\0" in name:
            raise TableError(
                f"{where}the name of column {number} of {len(names)} has a NUL "
                "character; is the file UTF-8 text?"
            )
        if not name.strip():
            raise TableError(
                f"{where}column {number} of {len(names)} has no name; name it or "
                "remove it."
            )
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise TableError(
            f"{where}the column name {name!r} appears {count} times; column names must "
            "be unique."
        )


def check_column_exists(table: ColumnSource, name: str, *, role: str) -> None:
    """Raises a `TableError` with a suggestion unless the table has the column."""
    if name not in table.column_names:
        raise TableError(describe_missing_column(name, table.column_names, role=role))


def describe_missing_column(name: str, names: Sequence[str], *, role: str) -> str:
    """Returns the error message for a missing column, with a suggestion."""
    plain = {other.strip().lower(): other for other in names}
    # Suggest only names that differ in a letter or two; others would mislead.
    near = difflib.get_close_matches(name.strip().lower(), plain, n=1, cutoff=0.8)
    suggestion = f" (did you mean {plain[near[0]]!r}?)" if near else ""
    return (
        f"The table has no {role} column {name!r}{suggestion}; its columns are "
        f"{list_names(names)}."
    )


def list_names(names: Sequence[str], most: int = 20) -> str:
    """Returns the names as text; of many names only the first `most`."""
    text = ", ".join(repr(name) for name in names[:most])
    more = len(names) - most
    return f"{text} and {more} more" if more > 0 else text
