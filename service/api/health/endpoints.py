"""`/health`: for load balancers and orchestrators."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.health.readiness import check_ready
from service.api.http.errors import responses
from service.api.state import State
from service.shared.errors import Unavailable

router = APIRouter(prefix="/health", tags=["health"])


class Health(BaseModel):
    """The response of a healthy service."""

    status: str


@router.get("/live", summary="Whether the process runs")
async def live() -> Health:
    """Answers as soon as the process runs."""
    return Health(status="live")


@router.get(
    "/ready",
    summary="Whether all parts work",
    responses=responses(Unavailable),
)
async def ready(state: State) -> Health:
    """Answers 503 with each part that fails: database, disk, models, dispatcher."""
    await check_ready(state)
    return Health(status="ready")
