"""`/metrics`, in Prometheus' format."""

import asyncio
import logging

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.api.http.errors import responses
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import may_predict
from service.api.state import State
from service.shared.errors import Unavailable

logger = logging.getLogger(__name__)

router = APIRouter(tags=["health"], dependencies=[may_predict], route_class=ScopedRoute)


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses=responses(Unavailable)
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(state: State) -> Response:
    """Requests, jobs, processes, models and how sure these were.

    Without the figures of the models while their process is not up.
    """
    own = await asyncio.to_thread(generate_latest, state.metrics)
    try:
        models = await state.models.metrics()
    except Unavailable as error:
        logger.info("no figures of the models: %s", error)
        models = b""
    return Response(own + models, media_type=CONTENT_TYPE_LATEST)
