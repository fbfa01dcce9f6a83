"""Receives an upload: body, format, inspection, dataset."""

import asyncio
from dataclasses import dataclass

from fastapi import Request

from service.api.datasets.body import UploadBody, clean_name, detect_format, discard
from service.api.datasets.upload_file import UploadFile
from service.api.http.errors import DATABASE_OUTAGES, outage
from service.api.state import ServiceState
from service.shared.database.tables import Dataset
from service.shared.errors import ServiceError
from service.shared.sandbox import Inspection, Limits, Task
from tfbbb.tables.format import Format

_BLOCK_BYTES = 2**20


async def upload(
    state: ServiceState, request: Request, name: str | None
) -> tuple[Dataset, bool]:
    """Stores the table of a request as a dataset; returns whether it is new."""
    received = await receive_file(state, request)
    file, format = received.file, received.format
    try:
        shown = clean_name(name) if name else received.name
        given = shown if name or received.is_named else None
        same = await asyncio.to_thread(state.datasets.look_up, file.sha256, given)
        if same is not None:
            return same, False
        limits = Limits.from_settings(state.settings)
        task = Task(path=file.path, format=format, limits=limits)
        found = await state.sandbox.result("inspect", task)
        inspection = Inspection.model_validate(found)
        return await asyncio.to_thread(
            state.datasets.add, shown, file, format, inspection
        )
    finally:
        await asyncio.to_thread(file.close)


@dataclass(frozen=True)
class ReceivedFile:
    """The file of a request, which its owner must close; it may have no name."""

    file: UploadFile
    name: str
    is_named: bool
    format: Format


async def receive_file(state: ServiceState, request: Request) -> ReceivedFile:
    """Receives the file of a request."""
    file: UploadFile | None = None
    try:
        try:
            body = UploadBody(request, state.settings)
            file = await asyncio.to_thread(state.datasets.begin)
            await _receive(body, file)
        except (ServiceError, OSError, *DATABASE_OUTAGES) as error:
            raise await _refusal(request, error) from None
        format = detect_format(file.beginning, body.media_type)
        return ReceivedFile(file, clean_name(body.name or ""), bool(body.name), format)
    except BaseException:
        if file is not None:
            file.close()
        raise


async def _refusal(request: Request, error: Exception) -> Exception:
    """Makes the response to a refused upload close the connection."""
    await discard(request)
    refusal = error if isinstance(error, ServiceError) else outage(error)
    if refusal is None:
        return error
    refusal.headers = {"Connection": "close"}
    return refusal


async def _receive(body: UploadBody, file: UploadFile) -> None:
    """Writes the body in blocks, in a thread."""
    block = bytearray()
    async for piece in body.pieces():
        block += piece
        if len(block) >= _BLOCK_BYTES:
            await asyncio.to_thread(file.write, block)
            block.clear()
    await asyncio.to_thread(file.write, block)
