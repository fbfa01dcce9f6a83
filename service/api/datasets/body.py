"""The uploaded file in the body of a request, as it arrives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.api.datasets.file_name import disposition_file_name
from service.api.datasets.formats import check_media_type
from service.api.datasets.multipart import FormFile
from service.shared.errors import RequestTooLarge, UploadTimeout
from service.shared.settings import Settings

# An upload is given up if fewer bytes arrive in this time.
STALL_SECONDS, _BYTES_IN_TIME = 30.0, 2**16
_DISCARDED_BYTES = 2**20
_DISCARDED_SECONDS = 1.0


async def discard(request: Request) -> None:
    """Reads a small part of a refused body, so that the client can read the error.

    Closing a connection on which data still arrives would drop the response.
    """
    left = _DISCARDED_BYTES
    # The body may already have been read completely.
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(_DISCARDED_SECONDS):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    break


class UploadBody:
    """A table that is being uploaded: the file of a form, or the whole body."""

    def __init__(self, request: Request, settings: Settings) -> None:
        self._stream = request.stream()
        self._settings = settings
        header = request.headers.get("content-type", "")
        self.media_type = header.partition(";")[0].strip().lower()
        self._form: FormFile | None = None
        self._name: str | None = None
        if self.media_type == "multipart/form-data":
            self._form = FormFile(header)
        else:
            check_media_type(self.media_type)
            disposition = request.headers.get("content-disposition", "")
            self._name = disposition_file_name(disposition.encode("latin-1"))
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > settings.max_upload_bytes:
            raise self._too_large()

    @property
    def name(self) -> str | None:
        """The name of the file, if it has arrived and has one."""
        return self._form.name if self._form else self._name

    def pieces(self) -> AsyncIterator[bytes]:
        """Yields the content of the file."""
        return self._form.pieces(self._chunks()) if self._form else self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        seconds = STALL_SECONDS
        clock = asyncio.get_running_loop()
        deadline, due = clock.time() + seconds, _BYTES_IN_TIME
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(self._stream, None)
            except TimeoutError:
                raise UploadTimeout(
                    f"Less than {_BYTES_IN_TIME} bytes arrived in {seconds:g} s; "
                    "upload the table again. "
                    f"Received: {num_bytes} bytes in all"
                ) from None
            if chunk is None:
                return
            num_bytes += len(chunk)
            if num_bytes > self._settings.max_upload_bytes:
                raise self._too_large()
            if num_bytes >= due:
                deadline, due = clock.time() + seconds, num_bytes + _BYTES_IN_TIME
            yield chunk

    def _too_large(self) -> RequestTooLarge:
        return RequestTooLarge(
            f"An upload may have at most {self._settings.max_upload_bytes} bytes "
            "(TFBBB_MAX_UPLOAD_BYTES); Parquet files are the smallest."
        )
