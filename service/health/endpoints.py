from fastapi import APIRouter
from pydantic import BaseModel

from service.errors import Unavailable, responses
from service.state import State

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
    summary="Whether models answer",
    responses=responses(Unavailable),
)
async def ready(state: State) -> Health:
    """Answers 503 until every model found is loaded, or known to be broken."""
    state.registry.check_ready()
    return Health(status="ready")
