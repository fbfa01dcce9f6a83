"""`:predict-file`: predicts a file of any format, and answers with one of the same."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path, PurePath
from urllib.parse import quote

import orjson
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.api.datasets.uploading import MEDIA_TYPES, clean_name, received_file
from service.api.predictions.answering import (
    choose_media_type,
    unless_disconnected,
)
from service.api.predictions.schemas import REFUSED_OF_FILES
from service.api.state import ServiceState
from service.predicting.codecs.codec import PROGRESS
from service.shared.errors import InvalidRequest, ServiceError, Unavailable
from service.shared.sandbox import Limits, PredictTask
from tfbbb.base.types import JsonObject
from tfbbb.tables.format import SUFFIXES, Format

_FILE = "application/octet-stream"
_CHUNK_BYTES = 2**20


async def predict_file(
    state: ServiceState, request: Request, name: str, asked: int | None
) -> Response:
    """Predicts the rows of a file, all by one version."""
    chosen = choose_media_type(request, (_FILE, PROGRESS), _FILE)
    options = dict(request.query_params)
    shown = clean_name(options.pop("name", ""))
    for refused in options.keys() & {*REFUSED_OF_FILES}:
        raise InvalidRequest(f"A file cannot be predicted with {refused!r}.", refused)
    version = await _find_version(state, name, asked)
    # The answer removes the files; if there is none, the block does.
    async with AsyncExitStack() as files:
        receiving = received_file(state, request)
        file, format = await files.enter_async_context(receiving)
        output = await asyncio.to_thread(state.datasets.begin)
        files.callback(output.close)
        settings, store = state.settings, state.queue.store
        # Nothing here writes `.ods`.
        written: Format = "xlsx" if format == "ods" else format
        task = PredictTask(
            path=file.path,
            name=shown,
            format=format,
            limits=Limits.from_settings(settings),
            version=await asyncio.to_thread(store.version, name, version),
            parameters=options,
            max_work=settings.max_work,
            default_num_samples=settings.default_num_samples,
            output=output.path,
            written=written,
        )
        events = state.sandbox.lines("predict", task)
        files.push_async_callback(events.aclose)
        # Most mistakes show in the first rows, and get a status of their own.
        first = await unless_disconnected(request, anext(events))
        named = f"{_stem(shown)}-predicted.{written}"
        headers = {"Model-Version": str(version), "Cache-Control": "no-store"}
        if chosen == PROGRESS:
            content, kind = _tell(first, events, named, output.path), PROGRESS
        else:
            await unless_disconnected(request, _exhaust(events))
            content = _read(output.path)
            media_types = {form: kind for kind, form in reversed(MEDIA_TYPES.items())}
            kind = media_types.get(written, _FILE)
            headers["Content-Length"] = str(output.path.stat().st_size)
            attachment = f"attachment; filename*=UTF-8''{quote(named)}"
            headers["Content-Disposition"] = attachment
        return _Answer(files.pop_all(), content, kind, headers)


async def _find_version(state: ServiceState, name: str, version: int | None) -> int:
    """Returns the number of a version that can be used, by default `latest`."""
    status = await state.models.version(name, version)
    if status.description is None:
        reasons = [one.status.error_message for one in status.model_version_status]
        raise Unavailable(" ".join(filter(None, reasons)) or "The model is not usable.")
    return int(status.description.version)


def _stem(name: str) -> str:
    """Returns the name of a file without its suffix, such as `.csv.gz`."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(f".{suffix}"):
            return name[: -len(suffix) - 1]
    return PurePath(name).stem


async def _tell(
    first: JsonObject, events: AsyncIterator[JsonObject], name: str, file: Path
) -> AsyncIterator[bytes]:
    """Yields lines of JSON and then the file; an error is the last line."""
    yield _event(first)
    try:
        async for line in events:
            yield _event(line)
    except ServiceError as error:
        yield _line({"error": str(error), "field": error.field})
        return
    yield _line({"file": name, "num_bytes": file.stat().st_size})
    async for chunk in _read(file):
        yield chunk


def _event(line: JsonObject) -> bytes:
    """Returns the progress, or at the end some of the rows."""
    return _line(line.get("progress") or {"preview": line["result"]})


async def _exhaust(events: AsyncGenerator[JsonObject]) -> None:
    async for _ in events:
        pass


async def _read(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk


class _Answer(StreamingResponse):
    """Removes the files of its work, also if the client has hung up before."""

    def __init__(
        self,
        files: AsyncExitStack,
        content: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._files:
            await super().__call__(scope, receive, send)


def _line(event: JsonObject) -> bytes:
    return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
