"""Answers prediction requests in the format that the request asks for."""

import time
from collections.abc import Mapping

from fastapi import Request, Response

from service.api.http.disconnect import unless_disconnected
from service.api.http.media_types import (
    check_not_encoded,
    choose_media_type,
    media_type,
)
from service.api.http.request_log import add_to_log
from service.api.state import ServiceState
from service.shared.errors import UnsupportedMediaType
from service.shared.prediction_formats import FORMATS, JSON
from service.shared.settings import Settings

# `curl -d` declares a form by default, also in the examples of TensorFlow Serving.
_JSON_TYPES = ("", JSON, "application/x-www-form-urlencoded")


async def answer_table(
    state: ServiceState, request: Request, name: str, version: int | None
) -> Response:
    """Predicts a table; `Accept` chooses the format, that of the body by default."""
    given = _table_type(request)
    chosen = choose_media_type(request, tuple(FORMATS), given)
    return await answer(
        state,
        request,
        name,
        version,
        reads=FORMATS[given],
        writes=FORMATS[chosen],
        options=dict(request.query_params),
    )


def check_json(request: Request) -> None:
    """Raises `UnsupportedMediaType` unless the body is declared as JSON."""
    given = media_type(request)
    if not _is_json(given):
        raise UnsupportedMediaType(
            f"The body must be JSON, `Content-Type: {JSON}`. Received: {given!r:.100}"
        )


async def answer(
    state: ServiceState,
    request: Request,
    name: str,
    version: int | None,
    *,
    reads: str,
    writes: str,
    options: Mapping[str, object],
) -> Response:
    """Predicts the table in the body of a request."""
    check_not_encoded(request)
    with state.models.admitted(declared_size(request, state.settings)):
        predicting = state.models.predict(
            name,
            version,
            await request.body(),
            arrival(request),
            reads=reads,
            writes=writes,
            options=options,
        )
        answer, understood = await unless_disconnected(request, predicting)
    number = understood.version.number
    add_to_log(model=name, version=number, rows=understood.num_rows)
    return Response(answer.body, headers=answer.headers, media_type=answer.media_type)


def arrival(request: Request) -> float:
    """Returns when a request has arrived, from which its deadline counts."""
    # `JsonErrorProtocol` notes when the first byte came.
    return float(request.scope.get("arrived", time.monotonic()))


def declared_size(request: Request, settings: Settings) -> int:
    """Returns the size of a body, or the largest size if the client does not say."""
    length = request.headers.get("content-length")
    return settings.max_body_bytes if length is None else int(length)


def _table_type(request: Request) -> str:
    """Returns the media type of the body among those of tables."""
    given = media_type(request)
    if _is_json(given):
        return JSON
    if given not in FORMATS:
        raise UnsupportedMediaType(
            f"The body must be JSON, `Content-Type: {JSON}`, or a table in one of "
            f"{', '.join(kind for kind in FORMATS if kind != JSON)}. "
            f"Received: {given!r:.100}"
        )
    return given


def _is_json(given: str) -> bool:
    return given in _JSON_TYPES or given.endswith("+json")
