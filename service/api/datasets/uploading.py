"""Receives an upload: body, format, inspection, dataset."""

import asyncio
from dataclasses import dataclass

from fastapi import Request

from service.api.datasets.body import UploadBody, discard
from service.api.datasets.file_name import clean_name
from service.api.datasets.formats import detect_format
from service.api.datasets.store import Upload
from service.api.datasets.upload_directory import UploadDirectory
from service.api.datasets.upload_file import UploadFile, convert_disk_errors
from service.api.keys.caller import Caller
from service.api.state import ServiceState
from service.shared.database.tables import Dataset
from service.shared.errors import InvalidRequest, ServiceError
from service.shared.inspection import Limits
from service.shared.json_types import JsonObject
from tfbbb.tables.format import Format

_BLOCK_BYTES = 2**20


async def upload(
    state: ServiceState, caller: Caller, request: Request, name: str | None
) -> tuple[Dataset, bool]:
    """Stores the table of a request, in one file or several, as a dataset."""
    files: list[UploadFile] = []
    joined: UploadDirectory | None = None
    try:
        body = await _receive_all(state, request, files)
        names = _distinct([clean_name(given or "") for given in body.names])
        formats = [
            _format(file, shown, body, alone=len(files) == 1)
            for file, shown in zip(files, names, strict=True)
        ]
        file: Upload = files[0]
        parts: list[JsonObject] = []
        format = formats[0]
        if len(files) > 1:
            parts = [
                {
                    "name": shown,
                    "sha256": one.sha256,
                    "format": its,
                    "num_bytes": one.num_bytes,
                }
                for one, shown, its in zip(files, names, formats, strict=True)
            ]
            file = joined = await asyncio.to_thread(state.datasets.join, files, formats)
            format = "parts"
        shown = clean_name(name) if name else names[0]
        dataset, inspection = await asyncio.to_thread(
            state.datasets.look_up,
            caller,
            file,
            shown if name or body.names[0] else None,
        )
        if dataset is not None:
            return dataset, False
        if inspection is None:
            limits = Limits.from_settings(state.settings)
            inspection = await state.inspector.inspect(
                file.path, format, limits, names if parts else ()
            )
        return await asyncio.to_thread(
            state.datasets.add, caller, shown, file, format, inspection, parts
        )
    finally:
        for upload in (*files, joined):
            if upload is not None:
                await asyncio.to_thread(upload.close)


@dataclass(frozen=True)
class ReceivedFile:
    """A file of a request, which its owner must close.

    Args:
        file: The file.
        name: Its name.
        format: Its format.
    """

    file: UploadFile
    name: str
    format: Format


async def receive_file(state: ServiceState, request: Request) -> ReceivedFile:
    """Receives the only file of a request, which no dataset keeps."""
    files: list[UploadFile] = []
    try:
        body = await _receive_all(state, request, files)
        if len(files) > 1:
            raise InvalidRequest(
                f"Send one file at a time. Received: {len(files)} files"
            )
        name = clean_name(body.names[0] or "") if body.names else "table"
        return ReceivedFile(files[0], name, _format(files[0], name, body, alone=True))
    except BaseException:
        for file in files:
            file.close()
        raise


async def _receive_all(
    state: ServiceState, request: Request, files: list[UploadFile]
) -> UploadBody:
    """Writes the files of a request, and adds them to a list as they come."""
    try:
        body = UploadBody(request, state.settings)
        files.append(await asyncio.to_thread(state.datasets.begin))
        await _receive(body, state, files)
    except ServiceError as error:
        raise await _refusal(request, error) from None
    return body


def _format(file: UploadFile, name: str, body: UploadBody, *, alone: bool) -> Format:
    """Detects the format of a file; an error names one of several files."""
    try:
        return detect_format(file.beginning, body.media_type if alone else "")
    except ServiceError as error:
        if alone:
            raise
        raise type(error)(f"{name}: {error}") from None


def _distinct(names: list[str]) -> list[str]:
    """Adds the number of a file to names that are not unique."""
    return [
        f"{name} (file {number})" if names.count(name) > 1 else name
        for number, name in enumerate(names, start=1)
    ]


async def _refusal(request: Request, error: ServiceError) -> ServiceError:
    """Makes the response to a refused upload close the connection."""
    await discard(request)
    error.headers = {"Connection": "close"}
    return error


async def _receive(
    body: UploadBody, state: ServiceState, files: list[UploadFile]
) -> None:
    """Writes the body in blocks, in a thread, and begins a file for each of a form."""
    block = bytearray()
    async for index, piece in body.pieces():
        if index >= len(files):
            await asyncio.to_thread(_write, files[-1], block)
            block.clear()
            files.append(await asyncio.to_thread(state.datasets.begin))
        block += piece
        if len(block) >= _BLOCK_BYTES:
            await asyncio.to_thread(_write, files[-1], block)
            block.clear()
    await asyncio.to_thread(_write, files[-1], block)


def _write(file: UploadFile, block: bytearray) -> None:
    with convert_disk_errors():
        file.write(block)
