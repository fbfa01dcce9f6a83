"""`/metrics`, in the text format of Prometheus."""

import asyncio

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from service.api.http.errors import responses
from service.api.http.scoped_route import ScopedRoute
from service.api.keys.caller import may_read_metrics
from service.api.state import State
from service.shared.errors import Unavailable

router = APIRouter(
    tags=["health"], dependencies=[may_read_metrics], route_class=ScopedRoute
)


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses=responses(Unavailable)
    | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(state: State) -> Response:
    """Returns metrics of requests, jobs, processes, models and their uncertainty."""
    text = await asyncio.to_thread(state.metrics.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
