"""The media types of requests and of their responses."""

from collections.abc import Sequence

from fastapi import Request

from service.shared.errors import NotAcceptable, UnsupportedMediaType


def media_type(request: Request) -> str:
    """Returns the media type of the body in lower case; empty if it has none."""
    given = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def check_not_encoded(request: Request) -> None:
    """Raises `UnsupportedMediaType` if the body is compressed."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType(
            "The body must not be compressed: send it without `Content-Encoding`. "
            f"Received: {encoding!r:.100}"
        )


def choose_media_type(request: Request, offered: Sequence[str], default: str) -> str:
    """Returns the offered media type that `Accept` prefers (RFC 9110, 12.5.1)."""
    accept = request.headers.get("accept", "").strip() or "*/*"
    if accept == "*/*":
        return default
    qualities = dict(map(_read_range, accept.lower().split(",")))

    def quality(kind: str) -> float:
        ranges = (kind, f"{kind.partition('/')[0]}/*", "*/*")
        return next((qualities[x] for x in ranges if x in qualities), 0.0)

    best = max((default, *offered), key=quality)
    if not quality(best):
        raise NotAcceptable(
            f"The service answers in {', '.join(offered)}. "
            f"Received: Accept {accept!r:.100}"
        )
    return best


def _read_range(text: str) -> tuple[str, float]:
    """Returns a media range and its quality, 1 by default."""
    kind, *parameters = (part.strip() for part in text.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return kind, float(value)
            except ValueError:
                return kind, 0.0
    return kind, 1.0
