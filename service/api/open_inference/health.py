"""`/v2/health`: the health of the service, as the Open Inference Protocol names it."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.health.readiness import check_ready
from service.api.http.errors import responses
from service.api.state import State
from service.shared.errors import Unavailable

router = APIRouter(prefix="/v2/health", tags=["open inference"])


class Live(BaseModel):
    """The response of a process that runs."""

    live: bool


class Ready(BaseModel):
    """The response of a service whose parts all work."""

    ready: bool


@router.get("/live", name="v2_live", summary="Whether the process runs")
async def live() -> Live:
    """Answers as soon as the process runs."""
    return Live(live=True)


@router.get(
    "/ready",
    name="v2_ready",
    summary="Whether all parts work",
    responses=responses(Unavailable),
)
async def ready(state: State) -> Ready:
    """Answers 503 with each part that fails: database, disk, store, models."""
    await check_ready(state)
    return Ready(ready=True)
