"""`/health`: for load balancers and orchestrators."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.health.readiness import check_predicting, check_ready
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
    """Answers 503 with each part that fails: database, disk, store, models."""
    await check_ready(state)
    return Health(status="ready")


@router.get(
    "/predicting",
    summary="Whether predictions are answered",
    responses=responses(Unavailable),
)
async def predicting(state: State) -> Health:
    """Answers 200 while the models answer, also without database or store.

    A proxy before several services sends predictions to those that answer 200.
    """
    await check_predicting(state)
    return Health(status="predicting")
