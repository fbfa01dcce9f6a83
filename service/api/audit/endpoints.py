"""`/v1/audit`: who changed what and when."""

from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import select

from service.api.audit.schemas import Change, ChangePage
from service.api.http.errors import responses
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import may_administer
from service.api.pagination import Cursor, NextCursor, PageLimit, page
from service.api.state import State
from service.shared.database.tables import AuditEntry
from service.shared.errors import InvalidRequest

router = APIRouter(
    prefix="/v1/audit",
    tags=["audit"],
    dependencies=[may_administer],
    route_class=ScopedRoute,
)

_Text = Annotated[str | None, Query(max_length=300, pattern=r"^[^\x00]*$")]


@router.get("", summary="List the changes", responses=responses(InvalidRequest))
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
    with state.database.reading() as session:
        changes, following = page(
            session,
            select(AuditEntry).filter_by(**given),
            AuditEntry,
            None if cursor is None else Cursor.parse(cursor),
            limit,
        )
    return ChangePage(
        changes=[Change.from_row(entry) for entry in changes],
        next_cursor=None if following is None else str(following),
    )
