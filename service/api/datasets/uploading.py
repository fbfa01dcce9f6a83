"""Receives an upload: body, format, inspection, dataset."""

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from fastapi import Request

from service.api.datasets.store import UploadFile
from service.api.http.encoding import content_encoding
from service.api.http.requests import media_type
from service.api.state import ServiceState
from service.shared.database.tables import Dataset
from service.shared.errors import (
    InvalidRequest,
    RequestTooLarge,
    UnsupportedMediaType,
    UploadTimeout,
)
from service.shared.sandbox import Inspection, Limits, Task
from tfbbb.tables.format import Format, other_format, table_format

# An upload is given up if fewer bytes arrive in this time.
STALL_SECONDS, _BYTES_IN_TIME = 30.0, 2**16
_BLOCK_BYTES = 2**20

# With one of these media types, only the content decides: `curl --data-binary` declares
# one of them by default.
_ANY = ("", "application/octet-stream", "application/x-www-form-urlencoded")
_TEXT = ("text/csv", "application/csv", "text/plain")
MEDIA_TYPES: dict[str, Format] = {
    **dict.fromkeys(_TEXT, "csv"),
    "text/tab-separated-values": "tsv",
    "application/gzip": "csv.gz",
    "application/x-gzip": "csv.gz",
    "application/zstd": "csv.zst",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
}


async def upload(
    state: ServiceState, request: Request, name: str | None
) -> tuple[Dataset, bool]:
    """Stores the table of a request as a dataset; returns whether it is new."""
    shown, datasets = clean_name(name or ""), state.datasets
    async with received_file(state, request) as (file, format):
        given = shown if name else None
        same = await asyncio.to_thread(datasets.look_up, file.sha256, given)
        if same is not None:
            return same, False
        limits = Limits.from_settings(state.settings)
        task = Task(path=file.path, format=format, limits=limits)
        inspection = Inspection.model_validate(
            await state.sandbox.result("inspect", task)
        )
        return await asyncio.to_thread(datasets.add, shown, file, format, inspection)


@asynccontextmanager
async def received_file(
    state: ServiceState, request: Request
) -> AsyncIterator[tuple[UploadFile, Format]]:
    """Receives the table in the body of a request, and removes its file at the end."""
    declared = _table_type(request)
    file = await asyncio.to_thread(state.datasets.begin)
    with closing(file):
        block = bytearray()
        async for piece in _receive(request, state.settings.max_upload_bytes):
            block += piece
            if len(block) >= _BLOCK_BYTES:
                await asyncio.to_thread(file.write, block)
                block.clear()
        await asyncio.to_thread(file.write, block)
        yield file, _detect_format(file.beginning, declared)


def clean_name(name: str) -> str:
    """Shortens a name to one printable line without directories."""
    last = re.split(r"[/\\]", name[-4096:])[-1]
    shown = "".join(c for c in last if unicodedata.category(c)[0] != "C")
    return unicodedata.normalize("NFC", shown.strip())[:200] or "table"


def _table_type(request: Request) -> str:
    """Returns the media type of a body that is a table.

    Its content says whether it is compressed.
    """
    content_encoding(request.scope)
    given = media_type(request)
    if given not in MEDIA_TYPES and given not in _ANY:
        raise UnsupportedMediaType(
            "Send the table as the whole body, e.g. with `curl --data-binary "
            f"@table.csv`, as one of the types {', '.join(MEDIA_TYPES)}. "
            f"Received: {given!r:.100}"
        )
    return given


async def _receive(request: Request, most_bytes: int) -> AsyncIterator[bytes]:
    """Yields the bytes of a table that is being uploaded."""
    too_large = RequestTooLarge(
        f"An upload may have at most {most_bytes} bytes (TFBBB_MAX_UPLOAD_BYTES); "
        "Parquet files are the smallest."
    )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most_bytes:
        raise too_large
    stream, num_bytes = request.stream(), 0
    clock = asyncio.get_running_loop()
    deadline, due = clock.time() + STALL_SECONDS, _BYTES_IN_TIME
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(stream, None)
        except TimeoutError:
            stalled = UploadTimeout(
                f"Less than {_BYTES_IN_TIME} bytes arrived in {STALL_SECONDS:g} s; "
                f"upload the table again. Received: {num_bytes} bytes in all"
            )
            stalled.headers = {"Connection": "close"}
            raise stalled from None
        if chunk is None:
            return
        num_bytes += len(chunk)
        if num_bytes > most_bytes:
            raise too_large
        if num_bytes >= due:
            deadline, due = clock.time() + STALL_SECONDS, num_bytes + _BYTES_IN_TIME
        yield chunk


def _detect_format(beginning: bytes, media_type: str) -> Format:
    """Detects the format from the first bytes of a file."""
    if not beginning:
        raise InvalidRequest("The upload is empty; send a table.")
    if what := other_format(beginning):
        raise UnsupportedMediaType(
            "The upload must be CSV (also compressed with gzip or zstd), JSON lines, "
            f"Parquet, Arrow IPC or a spreadsheet (.xlsx or .ods). Received: {what}"
        )
    found = table_format(beginning)
    declared = MEDIA_TYPES.get(media_type)
    if found is not None:
        return found
    if declared not in (None, "csv", "tsv"):
        raise UnsupportedMediaType(
            f"The declared type is {media_type}, but the content has another format. "
            f"Received: {beginning[:16]!r}"
        )
    return declared or "csv"
