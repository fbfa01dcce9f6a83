"""`/health`: for load balancers and orchestrators."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.health.readiness import check_ready
from service.api.http.errors import responses
from service.api.state import State
from service.shared.errors import Unavailable

router = APIRouter(prefix="/health", tags=["health"])


class Health(BaseModel):
    """The answer while all is well."""

    status: str


@router.get("/live", summary="Whether the process runs")
async def live() -> Health:
    """Answers from the first moment on."""
    return Health(status="live")


@router.get(
    "/ready",
    summary="Whether all parts work",
    responses=responses(Unavailable),
)
async def ready(state: State) -> Health:
    """Answers 503 with what is lacking: database, disk, models or dispatcher."""
    await check_ready(state)
    return Health(status="ready")
