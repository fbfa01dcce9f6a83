"""Checks of column names, with suggestions for misspelt names."""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tfbbb.base.suggestions import near_name
from tfbbb.base.texts import listed
from tfbbb.tables.table_error import TableError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_SHOWN = 20


@runtime_checkable
class ColumnSource(Protocol):
    """A table from which a schema is inferred: a `pyarrow.Table` or a `StoredTable`."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    def column(self, name: str) -> "pa.ChunkedArray":
        """Returns the values of a column."""


def named_targets(names: Sequence[str]) -> str:
    """Returns the target or the targets, for a sentence."""
    kind = "target" if len(names) == 1 else "targets"
    return f"the {kind} {list_names(names)}"


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


def compose_letters(text: str) -> str:
    """Returns a text in Unicode's NFC, in which ü is one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def complete_names(names: Sequence[str]) -> list[str]:
    """Returns names that are not empty and unique, with composed letters."""
    names = [compose_letters(name) for name in names]
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


def may_begin_with_index(names: Sequence[str]) -> bool:
    """Whether only the first column has no name, as the index that pandas writes."""
    unnamed = [place for place, name in enumerate(names) if not name.strip()]
    return unnamed == [0] and len(names) > 1


def describe_names(
    given: Sequence[str], names: Sequence[str], left_out: Collection[int] = ()
) -> Iterator[str]:
    """Describes the columns that were named, renamed or left out."""
    unnamed = [place for place, name in enumerate(given) if not name.strip()]
    called = [names[place] for place in unnamed if place not in left_out]
    if called and len(unnamed) < len(given):
        yield f"Named, as the file has no name for it: {list_names(called)}."
    if left_out:
        places = ", ".join(map(str, sorted(place + 1 for place in left_out)))
        yield f"Left out, as it has neither a name nor values: column {places}."
    renamed = [
        new
        for old, new in zip(given, names, strict=True)
        if old.strip() and compose_letters(old) != new
    ]
    if renamed:
        yield f"Renamed, as another column has its name: {list_names(renamed)}."


def check_columns_exist(
    table: ColumnSource, names: Iterable[str], *, role: str
) -> None:
    """Raises a `TableError` with suggestions unless the table has all columns."""
    if missing := describe_missing_columns(names, table.column_names, role=role):
        raise TableError(missing)


def describe_missing_columns(
    asked: Iterable[str], names: Sequence[str], *, role: str
) -> str:
    """Returns the error message for all missing columns, with suggestions."""
    known = set(names)
    missing = list(dict.fromkeys(name for name in asked if name not in known))
    if not missing:
        return ""

    def quoted(name: str) -> str:
        # Suggest only names that differ in a letter or two; others would mislead.
        near = near_name(name, names, cutoff=0.8)
        return repr(name) if near is None else f"{name!r} (did you mean {near!r}?)"

    shown = [quoted(name) for name in missing[:_MOST_SHOWN]]
    if len(missing) > _MOST_SHOWN:
        shown.append(f"{len(missing) - _MOST_SHOWN} more")
    column = "column" if len(missing) == 1 else "columns"
    return (
        f"The table has no {role} {column} {listed(shown)}; its columns are "
        f"{list_names(names)}."
    )


def list_names(names: Sequence[str]) -> str:
    """Returns the names as text; of many names only the first."""
    text = ", ".join(repr(name) for name in names[:_MOST_SHOWN])
    more = len(names) - _MOST_SHOWN
    return f"{text} and {more} more" if more > 0 else text
