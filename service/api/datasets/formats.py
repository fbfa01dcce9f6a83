"""Detects the format of an upload from its first bytes."""

from service.shared.errors import InvalidRequest, UnsupportedMediaType
from tfbbb.tables.content import other_format, table_format
from tfbbb.tables.format import Format

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
