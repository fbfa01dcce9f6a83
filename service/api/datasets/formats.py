"""Which format an upload is in: its first bytes say."""

from service.shared.errors import InvalidRequest, UnsupportedMediaType
from tfbbb.data.content import other_format, table_format
from tfbbb.data.format import Format

# Without one, or of these, the content alone decides: `curl --data-binary` declares a
# form unless it is told otherwise.
_ANY = ("", "application/octet-stream", "application/x-www-form-urlencoded")
_TEXT = ("text/csv", "application/csv", "text/plain")
MEDIA_TYPES: dict[str, Format] = {
    **dict.fromkeys(_TEXT, "csv"),
    "application/gzip": "csv.gz",
    "application/x-gzip": "csv.gz",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.arrow.stream": "arrow",
}


def check_media_type(media_type: str) -> None:
    """Raises `UnsupportedMediaType` unless a table may be declared so."""
    if media_type not in MEDIA_TYPES and media_type not in _ANY:
        raise UnsupportedMediaType(
            "A table is sent as multipart/form-data, or as it is, declared as one of "
            f"{', '.join(MEDIA_TYPES)}. Received: {media_type!r:.100}"
        )


def detect_format(beginning: bytes, media_type: str) -> Format:
    """Tells the format by the first bytes of a file.

    Raises:
        InvalidRequest: If there are none.
        UnsupportedMediaType: If the file is no table, or not what it is declared as.
    """
    if not beginning:
        raise InvalidRequest("The upload is empty: a table must be sent.")
    if what := other_format(beginning):
        raise UnsupportedMediaType(
            "The upload must be CSV, CSV compressed with gzip, Parquet or Arrow IPC. "
            f"Received: {what}"
        )
    found: Format = table_format(beginning) or "csv"
    declared = MEDIA_TYPES.get(media_type, found)
    if found == "csv" and declared != "csv":
        raise UnsupportedMediaType(
            f"The upload is declared as {media_type}, but its content is not. "
            f"Received: {beginning[:16]!r}"
        )
    return found
