"""`:predict-file`: predicts a file of any format, and answers with one of the same."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import quote

import orjson
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.api.datasets.body import MEDIA_TYPES
from service.api.datasets.upload_file import UploadFile
from service.api.datasets.uploading import ReceivedFile, receive_file
from service.api.predictions.answering import (
    check_not_encoded,
    choose_media_type,
    unless_disconnected,
)
from service.api.predictions.schemas import REFUSED_OF_FILES
from service.api.state import ServiceState
from service.shared.errors import InvalidRequest, ServiceError, Unavailable
from service.shared.json_types import JsonObject
from service.shared.prediction_formats import PROGRESS
from service.shared.sandbox import Limits, PredictTask
from tfbbb.tables.format import SUFFIXES, Format

_FILE = "application/octet-stream"
_CHUNK_BYTES = 2**20


async def predict_file(
    state: ServiceState, request: Request, name: str, asked: int | None
) -> Response:
    """Predicts the rows of a file, all by one version."""
    check_not_encoded(request)
    chosen = choose_media_type(request, (_FILE, PROGRESS), _FILE)
    options = dict(request.query_params)
    for refused in options.keys() & {*REFUSED_OF_FILES}:
        raise InvalidRequest(f"A file cannot be predicted with {refused!r}.", refused)
    version = await _find_version(state, name, asked)
    received = await receive_file(state, request)
    try:
        output = await asyncio.to_thread(state.datasets.begin)
    except BaseException:
        received.file.close()
        raise
    work = _Work(state, name, version, received, output)
    events = work.events(options)
    try:
        # Most mistakes show in the first rows, and get a status of their own.
        first = await unless_disconnected(request, _next(events))
        if chosen == PROGRESS:
            return _Answer(
                work, work.progress(first, events), PROGRESS, headers=work.headers
            )
        await unless_disconnected(request, _exhaust(events))
    except BaseException:
        await events.aclose()
        work.close()
        raise
    return _Answer(
        work,
        work.content(),
        work.media_type,
        headers={
            **work.headers,
            "Content-Length": str(work.num_bytes),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(work.name)}",
        },
    )


async def _find_version(state: ServiceState, name: str, version: int | None) -> int:
    """Returns the number of a version that can be used, by default `latest`."""
    status = await state.models.version(name, version)
    if status.description is None:
        reasons = [one.status.error_message for one in status.model_version_status]
        raise Unavailable(" ".join(filter(None, reasons)) or "The model is not usable.")
    return int(status.description.version)


@dataclass
class _Work:
    """The prediction of one file."""

    state: ServiceState
    model: str
    version: int
    received: ReceivedFile
    output: UploadFile

    @property
    def written(self) -> Format:
        """The format of the answer: that of the file, of which none writes `.ods`."""
        return "xlsx" if self.received.format == "ods" else self.received.format

    @property
    def name(self) -> str:
        """The name of the answer."""
        stem, suffix = _split(self.received.name, self.received.format)
        return f"{stem}-predicted.{'xlsx' if self.written == 'xlsx' else suffix}"

    @property
    def media_type(self) -> str:
        of_format = {format: kind for kind, format in reversed(MEDIA_TYPES.items())}
        return of_format.get(self.written, _FILE)

    @property
    def headers(self) -> dict[str, str]:
        return {"Model-Version": str(self.version), "Cache-Control": "no-store"}

    @property
    def num_bytes(self) -> int:
        return self.output.path.stat().st_size

    async def events(self, parameters: dict[str, str]) -> AsyncGenerator[JsonObject]:
        """Predicts all rows; yields the progress, and at the end some of the rows."""
        store, settings = self.state.queue.store, self.state.settings
        task = PredictTask(
            path=self.received.file.path,
            name=self.received.name,
            format=self.received.format,
            limits=Limits.from_settings(settings),
            version=await asyncio.to_thread(store.version, self.model, self.version),
            parameters=parameters,
            max_work=settings.max_work,
            default_num_samples=settings.default_num_samples,
            output=self.output.path,
            written=self.written,
        )
        async with aclosing(self.state.sandbox.lines("predict", task)) as lines:
            async for line in lines:
                yield line.get("progress") or {"preview": line["result"]}

    async def progress(
        self, first: JsonObject, events: AsyncIterator[JsonObject]
    ) -> AsyncIterator[bytes]:
        """Yields lines of JSON and then the file; an error is the last line."""
        yield _line(first)
        try:
            async for event in events:
                yield _line(event)
        except ServiceError as error:
            yield _line({"error": str(error), "field": error.field})
            return
        yield _line({"file": self.name, "num_bytes": self.num_bytes})
        async for chunk in self.content():
            yield chunk

    async def content(self) -> AsyncIterator[bytes]:
        """Yields the bytes of the answer."""
        with self.output.path.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
                yield chunk

    def close(self) -> None:
        """Removes the files."""
        self.received.file.close()
        self.output.close()


class _Answer(StreamingResponse):
    """Removes the files of its work, also if the client has hung up before."""

    def __init__(
        self,
        work: _Work,
        content: AsyncIterator[bytes],
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._work.close()


async def _next(events: AsyncIterator[JsonObject]) -> JsonObject:
    return await anext(events)


async def _exhaust(events: AsyncIterator[JsonObject]) -> None:
    async for _ in events:
        pass


def _line(event: JsonObject) -> bytes:
    return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)


def _split(name: str, format: Format) -> tuple[str, str]:
    """Returns the name of a file without its suffix, and the suffix."""
    fitting = (
        suffix
        for suffix, known in SUFFIXES.items()
        if name.lower().endswith(f".{suffix}") and _family(known) == _family(format)
    )
    suffix = max(fitting, key=len, default=None)
    if suffix is None:
        # The content has another format than the name says.
        return PurePath(name).stem, format
    return name[: -len(suffix) - 1], name[-len(suffix) :]


def _family(format: Format) -> str:
    return format.replace("tsv", "csv")
