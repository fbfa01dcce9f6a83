"""Receives an upload: body, format, inspection, dataset."""

import asyncio

from fastapi import Request

from service.api.datasets.body import UploadBody, discard
from service.api.datasets.file_name import clean_name
from service.api.datasets.formats import detect_format
from service.api.datasets.upload_file import UploadFile, convert_disk_errors
from service.api.keys.caller import Caller
from service.api.state import ServiceState
from service.shared.database.tables import Dataset
from service.shared.errors import ServiceError
from service.shared.inspection import Limits

_BLOCK_BYTES = 2**20


async def upload(
    state: ServiceState, caller: Caller, request: Request, name: str | None
) -> tuple[Dataset, bool]:
    """Stores the table of a request as a dataset.

    Args:
        state: The state of the API.
        caller: The caller of the request.
        request: The request, with its body unread.
        name: Name of the dataset; defaults to the name of the file.

    Returns:
        The dataset, and whether it is new.
    """
    try:
        body = UploadBody(request, state.settings)
        file = await asyncio.to_thread(state.datasets.begin)
    except ServiceError as error:
        raise await _refusal(request, error) from None
    try:
        try:
            await _receive(body, file)
        except ServiceError as error:
            raise await _refusal(request, error) from None
        format = detect_format(file.beginning, body.media_type)
        dataset, inspection = await asyncio.to_thread(
            state.datasets.look_up, caller, file
        )
        if dataset is not None:
            return dataset, False
        if inspection is None:
            limits = Limits.from_settings(state.settings)
            inspection = await state.inspector.inspect(file.path, format, limits)
        shown = clean_name(name or body.name or "")
        return await asyncio.to_thread(
            state.datasets.add, caller, shown, file, format, inspection
        )
    finally:
        await asyncio.to_thread(file.close)


async def _refusal(request: Request, error: ServiceError) -> ServiceError:
    """Makes the response to a refused upload close the connection."""
    await discard(request)
    error.headers = {"Connection": "close"}
    return error


async def _receive(body: UploadBody, file: UploadFile) -> None:
    """Writes the body in blocks, in a thread."""
    block = bytearray()
    async for piece in body.pieces():
        block += piece
        if len(block) >= _BLOCK_BYTES:
            await asyncio.to_thread(_write, file, block)
            block.clear()
    await asyncio.to_thread(_write, file, block)


def _write(file: UploadFile, block: bytearray) -> None:
    with convert_disk_errors():
        file.write(block)
