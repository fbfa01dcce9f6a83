"""Answers prediction requests in the format that the request asks for."""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from service.api.http.requests import add_to_log, media_type
from service.api.state import ServiceState
from service.predicting.codecs.codec import FORMATS, JSON
from service.shared.errors import NotAcceptable, UnsupportedMediaType
from service.shared.settings import Settings

# `curl -d` declares a form by default, also in the examples of TensorFlow Serving.
_JSON_TYPES = ("", JSON, "application/x-www-form-urlencoded")


async def answer_table(
    state: ServiceState, request: Request, name: str, version: int | None
) -> Response:
    """Predicts a table; `Accept` chooses the format, that of the body by default."""
    given = check_media_type(request, *FORMATS)
    chosen = choose_media_type(request, tuple(FORMATS), given)
    return await answer(
        state,
        request,
        name,
        version,
        reads=FORMATS[given],
        writes=FORMATS[chosen],
        options=dict(request.query_params) if request.scope["query_string"] else {},
    )


def check_media_type(request: Request, *others: str) -> str:
    """Returns the media type of the body: JSON, or one of others."""
    given = media_type(request)
    if given in _JSON_TYPES or given.endswith("+json"):
        return JSON
    if given not in others:
        raise UnsupportedMediaType(
            f"The body must have the `Content-Type` {' or '.join((JSON, *others))}. "
            f"Received: {given!r:.100}"
        )
    return given


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
    size = declared_size(request, state.settings)
    with state.models.batcher.admitted(size) as recount:
        body = await request.body()
        recount(len(body))
        predicting = state.models.predict(
            name,
            version,
            body,
            # `JsonErrorProtocol` notes when the first byte came.
            request.scope.get("arrived", time.monotonic()),
            reads=reads,
            writes=writes,
            options=options,
        )
        answer, understood = await unless_disconnected(request, predicting)
    number = understood.version.number
    add_to_log(model=name, version=number, rows=understood.num_rows)
    return Response(answer.body, headers=answer.headers, media_type=answer.media_type)


def declared_size(request: Request, settings: Settings) -> int:
    """Returns the size of a body, or the largest size if the client does not say."""
    length = request.headers.get("content-length")
    return settings.max_body_bytes if length is None else int(length)


T = TypeVar("T")

# Most work is done before, and then costs no watching.
_SECONDS_UNWATCHED = 0.05


async def unless_disconnected(request: Request, work: Awaitable[T]) -> T:
    """Waits for work, and cancels it if the client of a request hangs up."""
    watching: asyncio.Task[None] | None = None
    working = asyncio.current_task()
    assert working is not None
    has_hung_up = False

    async def watch() -> None:
        nonlocal has_hung_up
        while (await request.receive())["type"] != "http.disconnect":
            pass
        has_hung_up = True
        working.cancel()

    def start_watching() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    # Most work ends before, and then costs a timer and no task.
    timer = asyncio.get_running_loop().call_later(_SECONDS_UNWATCHED, start_watching)
    try:
        return await work
    except asyncio.CancelledError:
        # Else the server cancels the request, which must go on.
        if has_hung_up and not working.uncancel():
            raise ClientDisconnect from None
        raise
    finally:
        timer.cancel()
        if watching is not None:
            watching.cancel()


def choose_media_type(request: Request, offered: Sequence[str], default: str) -> str:
    """Returns the media type that `Accept` names first; weights are ignored."""
    accept = request.headers.get("accept", "").strip() or "*/*"
    for wanted in accept.lower().split(","):
        pattern = wanted.partition(";")[0].strip()
        for kind in (default, *offered):
            if fnmatchcase(kind, pattern):
                return kind
    raise NotAcceptable(
        f"The service answers in {', '.join(offered)}. Received: Accept {accept!r:.100}"
    )
