"""Pagination of lists, newest first."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, TypeVar

from fastapi import Query
from sqlalchemy import Select, tuple_
from sqlalchemy.orm import Session

from service.shared.database.tables import AuditEntry, Dataset, Job
from service.shared.errors import InvalidRequest

Listed = TypeVar("Listed", AuditEntry, Dataset, Job)

NextCursor = Annotated[
    str | None, Query(max_length=200, description="`next_cursor` of the page before.")
]
PageLimit = Annotated[int, Query(ge=1, le=500)]


def page(
    session: Session,
    query: Select[Listed],
    table: type[Listed],
    cursor: str | None,
    limit: int,
) -> tuple[Sequence[Listed], str | None]:
    """Returns a page of entries, newest first, and the cursor of the next page."""
    if cursor is not None:
        place = tuple_(table.created_at, table.id)
        query = query.where(place < tuple_(*_parse(cursor)))
    newest_first = query.order_by(table.created_at.desc(), table.id.desc())
    # One more entry than the limit shows whether there is a next page.
    entries = session.scalars(newest_first.limit(limit + 1)).all()
    if len(entries) <= limit:
        return entries, None
    last = entries[limit - 1]
    return entries[:limit], f"{last.created_at!r}_{last.id}"


def _parse(cursor: str) -> tuple[float, str]:
    """Returns the time and the id of the last entry of the page before."""
    created_at, _, place = cursor.partition("_")
    with suppress(ValueError):
        if math.isfinite(float(created_at)) and place.isalnum():
            return float(created_at), place
    raise InvalidRequest(
        "`cursor` must be the `next_cursor` of the previous page. "
        f"Received: {cursor!r:.100}"
    )
