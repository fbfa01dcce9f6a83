"""Pagination of lists, newest first."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

import orjson
from fastapi import Query
from sqlalchemy import Select, tuple_
from sqlalchemy.orm import Session

from service.shared.database.tables import AuditEntry, Dataset, Job
from service.shared.errors import InvalidRequest

Listed = TypeVar("Listed", AuditEntry, Dataset, Job)

NextCursor = Annotated[
    str | None,
    Query(
        max_length=200,
        description="`next_cursor` of the previous page; omit it for the first page.",
    ),
]
PageLimit = Annotated[
    int, Query(ge=1, le=500, description="Largest number of entries of the page.")
]


@dataclass(frozen=True)
class Cursor:
    """A position in a list ordered by time: after the entry of this time and id."""

    created_at: float
    id: str

    def __str__(self) -> str:
        """Formats the cursor for clients."""
        place = orjson.dumps([self.created_at, self.id])
        return base64.urlsafe_b64encode(place).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the text form of a cursor."""
        try:
            padded = text.encode() + b"=" * (-len(text) % 4)
            created_at, place = orjson.loads(base64.urlsafe_b64decode(padded))
        except (ValueError, TypeError):
            created_at = place = None
        known = isinstance(created_at, float) and isinstance(place, str)
        if not known or not place.isalnum():
            raise InvalidRequest(
                "`cursor` must be the `next_cursor` of the previous page. "
                f"Received: {text!r:.100}"
            )
        return cls(created_at, place)


def page(
    session: Session,
    query: Select[Listed],
    table: type[Listed],
    before: Cursor | None,
    limit: int,
) -> tuple[Sequence[Listed], Cursor | None]:
    """Returns a page of entries, newest first, and the cursor of the next page."""
    if before is not None:
        place = tuple_(table.created_at, table.id)
        query = query.where(place < tuple_(before.created_at, before.id))
    newest_first = query.order_by(table.created_at.desc(), table.id.desc())
    # One more entry than the limit shows whether there is a next page.
    entries = session.scalars(newest_first.limit(limit + 1)).all()
    if len(entries) <= limit:
        return entries, None
    last = entries[limit - 1]
    return entries[:limit], Cursor(last.created_at, last.id)
