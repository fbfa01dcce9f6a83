"""The uploaded file in the body of a request, as it arrives."""

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator
from contextlib import suppress
from email.message import Message

from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from starlette.requests import ClientDisconnect

from service.shared.errors import (
    InvalidRequest,
    RequestTooLarge,
    UnsupportedMediaType,
    UploadTimeout,
)
from service.shared.settings import Settings
from tfbbb.tables.format import Format, other_format, table_format

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


_BOUNDARY = re.compile(r'boundary="?([^\s";,]{1,200})', re.IGNORECASE)
_FIELD = re.compile(rb'(?:^|;)\s*name="?([^";]*)', re.IGNORECASE)


class FormFile:
    """The part `file` of a form, as it arrives, and its `name` from then on."""

    def __init__(self, content_type: str) -> None:
        boundary = _BOUNDARY.search(content_type)
        if boundary is None:
            raise InvalidRequest(
                "A form must name its boundary, `multipart/form-data; boundary=...`. "
                f"Received: {content_type!r:.100}"
            )
        self.name: str | None = None
        self._found_file = self._in_file = self._ended = False
        self._field = self._value = self._disposition = b""
        self._pieces: list[bytes] = []
        self._parser = MultipartParser(
            boundary[1],
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._add_to_field,
                "on_header_value": self._add_to_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._add_data,
                "on_end": self._end,
            },
        )

    async def pieces(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yields the content of the file."""
        async for chunk in body:
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise InvalidRequest(f"The form is malformed: {error}") from None
            for piece in self._pieces:
                yield piece
            self._pieces.clear()
        if not self._ended:
            raise InvalidRequest("The form ends before its last boundary.")
        if not self._found_file:
            raise InvalidRequest(
                "The form has no part named `file`; `curl -F file=@table.csv` sends "
                "one."
            )

    def _begin_part(self) -> None:
        self._field = self._value = self._disposition = b""
        self._in_file = False

    def _add_to_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._field.lower() == b"content-disposition":
            self._disposition = self._value
        self._field = self._value = b""

    def _end_headers(self) -> None:
        field = _FIELD.search(self._disposition)
        self._in_file = field is not None and field[1] == b"file"
        if self._in_file:
            if self._found_file:
                raise InvalidRequest(
                    "A form must have one part named `file`: a dataset is one table in "
                    "one file. Received: several"
                )
            self._found_file = True
            self.name = disposition_file_name(self._disposition)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._pieces.append(data[start:end])

    def _end(self) -> None:
        self._ended = True


_LONGEST = 200
_LONGEST_HEADER = 4096


def clean_name(name: str) -> str:
    """Shortens a name to one printable line without directories."""
    last = re.split(r"[/\\]", name[-_LONGEST_HEADER:])[-1]
    shown = "".join(c for c in last if unicodedata.category(c)[0] != "C")
    return unicodedata.normalize("NFC", shown.strip())[:_LONGEST] or "table"


def disposition_file_name(header: bytes) -> str | None:
    """Returns the file name of a `Content-Disposition` header, or None."""
    message = Message()
    message["content-disposition"] = header[:_LONGEST_HEADER].decode(errors="replace")
    try:
        return message.get_filename()
    except ValueError:
        return None  # `filename*=undefined''x`: not a codec of text.


# With one of these media types, only the content decides: `curl --data-binary` declares
# a form by default.
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


def check_media_type(media_type: str) -> None:
    """Raises `UnsupportedMediaType` unless a table may have this media type."""
    if media_type not in MEDIA_TYPES and media_type not in _ANY:
        raise UnsupportedMediaType(
            "Upload a table as multipart/form-data, or as the whole body with one of "
            f"the types {', '.join(MEDIA_TYPES)}. Received: {media_type!r:.100}"
        )


def detect_format(beginning: bytes, media_type: str) -> Format:
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
