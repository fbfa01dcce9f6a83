"""`/v1/retention`: what the settings no longer keep."""

from fastapi import APIRouter

from service.api.http.errors import responses
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import may_administer
from service.api.retention import removal
from service.api.retention.schemas import RetentionReport
from service.api.state import State

router = APIRouter(
    tags=["retention"], dependencies=[may_administer], route_class=ScopedRoute
)


@router.get(
    "/v1/retention", summary="Show what would be removed", responses=responses()
)
async def show_retention(state: State) -> RetentionReport:
    """Shows what the next removal would remove, with its bytes; removes nothing."""
    return RetentionReport.of(state, await removal.find(state))


@router.post(
    "/v1/retention:apply", summary="Remove what is not kept", responses=responses()
)
async def apply_retention(state: State) -> RetentionReport:
    """Removes now what the service would remove within the hour, and returns it."""
    return RetentionReport.of(state, await removal.remove(state))
