"""`/v1/audit`: who changed what and when."""

from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field
from sqlalchemy import select

from service.api.http.routes import scoped_router
from service.api.keys.keyring import may_administer
from service.api.pagination import NextCursor, PageLimit, page
from service.api.state import State
from service.shared.database.tables import AuditEntry
from tfbbb.base.types import JsonObject

router = scoped_router("/v1/audit", "audit", may_administer)

_Text = Annotated[str | None, Query(max_length=300, pattern=r"^[^\x00]*$")]


class Change(BaseModel, from_attributes=True):
    """A change that was committed."""

    id: str
    created_at: datetime
    actor: str = Field(description="Name of the key, or a part of the service.")
    key_id: str | None = Field(description="`null` if no key asked for the change.")
    request_id: str | None = Field(description="As in the access log.")
    kind: str
    action: str
    subject: str = Field(description="An id, or `NAME/VERSION`, or `NAME/LABEL`.")
    details: JsonObject = Field(
        description="Columns of the changed row; `before` has those that it changed."
    )


class ChangePage(BaseModel):
    """A page of changes, newest first."""

    changes: list[Change]
    next_cursor: str | None


@router.get("", summary="List the changes")
def list_changes(
    state: State,
    actor: _Text = None,
    kind: _Text = None,
    subject: _Text = None,
    cursor: NextCursor = None,
    limit: PageLimit = 50,
) -> ChangePage:
    """Lists who made, moved and deleted datasets, jobs, versions, labels and keys.

    Newest first; pass `next_cursor` to get the next page.
    """
    wanted = {"actor": actor, "kind": kind, "subject": subject}
    given = {column: value for column, value in wanted.items() if value is not None}
    query = select(AuditEntry).filter_by(**given)
    with state.database.reading() as session:
        entries, following = page(session, query, AuditEntry, cursor, limit)
    return ChangePage(
        changes=[Change.model_validate(entry) for entry in entries],
        next_cursor=following,
    )
