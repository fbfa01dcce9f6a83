"""Checks of column names, with suggestions for misspelt names."""

import difflib
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

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


def complete_names(names: Sequence[str]) -> list[str]:
    """Returns names that are not empty and unique.

    A column without a name is called by its number, and of a repeated name the second
    column gets the suffix `_2`.

    Example:
    >>> complete_names(["a", "", "a", "a_2"])
    ['a', 'column 2', 'a_3', 'a_2']
    """
    taken = {name for name in names if name.strip()}
    seen: set[str] = set()
    unique = []
    for number, name in enumerate(names, start=1):
        named = name if name.strip() else f"column {number}"
        if named in seen or (named != name and named in taken):
            named = next(
                f"{named}_{count}"
                for count in itertools.count(2)
                if f"{named}_{count}" not in taken | seen
            )
        seen.add(named)
        unique.append(named)
    return unique


def fill_names(names: Sequence[str], further: Sequence[str]) -> list[str]:
    """Returns names; in place of those that are empty, the names of a further line."""
    return [
        name if name.strip() else other
        for name, other in zip(names, further, strict=True)
    ]


def describe_names(
    given: Sequence[str], names: Sequence[str], left_out: Collection[int] = ()
) -> Iterator[str]:
    """Describes the columns that were named, renamed or left out.

    Args:
        given: The names in the file.
        names: The names by `complete_names`.
        left_out: Places of the columns without a name and without values.
    """
    unnamed = [place for place, name in enumerate(given) if not name.strip()]
    has_names = len(unnamed) < len(given)
    called = [names[p] for p in unnamed if has_names and p not in left_out]
    if len(called) == 1:
        yield f"A column has no name and is called {called[0]!r}: give it a name."
    elif called:
        yield (
            f"{len(called)} columns have no name and are called {list_names(called)}: "
            "give them names."
        )
    if len(left_out) == 1:
        number = min(left_out) + 1
        yield f"Column {number} has neither a name nor values and is left out."
    elif left_out:
        yield (
            f"{len(left_out)} columns, the first of them column {min(left_out) + 1}, "
            "have neither a name nor values and are left out."
        )
    renamed = [
        (old, new)
        for old, new in zip(given, names, strict=True)
        if old.strip() and old != new
    ]
    if renamed:
        old, new = renamed[0]
        if len(renamed) == 1:
            yield f"A column repeats the name {old!r} and is called {new!r}: rename it."
        else:
            yield (
                f"{len(renamed)} columns repeat names of others and are called "
                f"{list_names([new for _, new in renamed])}: rename them."
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
