from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """A time in seconds since 1970 as the service tells it: ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
