"""Parses the file of a multipart form as it arrives."""

import re
from collections.abc import AsyncIterator

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError

from service.api.datasets.file_name import disposition_file_name
from service.shared.errors import InvalidRequest

_BOUNDARY = re.compile(r'boundary="?([^\s";,]{1,200})', re.IGNORECASE)
_FIELD = re.compile(rb'(?:^|;)\s*name="?([^";]*)', re.IGNORECASE)
_MOST_PARTS = 16
_LONGEST_HEADER = 8192


class FormFile:
    """The part `file` of a form, as it arrives; its content is not stored.

    Attributes:
        name: The name of the file, once it arrives, or None.
    """

    def __init__(self, content_type: str) -> None:
        boundary = _BOUNDARY.search(content_type)
        if boundary is None:
            raise InvalidRequest(
                "A form must name its boundary, `multipart/form-data; boundary=...`. "
                f"Received: {content_type!r:.100}"
            )
        self.name: str | None = None
        self._found_file = self._in_file = self._ended = False
        self._num_parts = 0
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
        self._num_parts += 1
        if self._num_parts > _MOST_PARTS:
            raise InvalidRequest(f"A form may have at most {_MOST_PARTS} parts.")
        self._field = self._value = self._disposition = b""
        self._in_file = False

    def _add_to_field(self, data: bytes, start: int, end: int) -> None:
        self._field = self._check_length(self._field + data[start:end])

    def _add_to_value(self, data: bytes, start: int, end: int) -> None:
        self._value = self._check_length(self._value + data[start:end])

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

    def _check_length(self, text: bytes) -> bytes:
        if len(text) > _LONGEST_HEADER:
            raise InvalidRequest(
                f"A header of a form's part may have at most {_LONGEST_HEADER} bytes."
            )
        return text
