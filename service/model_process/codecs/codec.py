"""What a wire format needs: a function that reads, and a function that writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service.model_process.answer import Answer
from service.model_process.query import Query
from service.shared.frames import Frame

Body = bytes | bytearray


@dataclass(frozen=True)
class Codec:
    """A wire format of predictions.

    Attributes:
        read: Reads a request from its body and from the options that stand in the URL
            or in the headers, by name. Raises `InvalidRequest` if they are not valid.
        write: Writes the response; see `response`.
    """

    read: Callable[[Body, Mapping[str, Any]], Query]
    write: Callable[[Answer], Frame]


def response(body: Body, media_type: str, **headers: str) -> Frame:
    """Returns the frame of a response that the API passes on as it is.

    Args:
        body: The body.
        media_type: Its media type.
        headers: Further HTTP headers; `_` stands for `-`.
    """
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Frame({"media_type": media_type, "headers": named}, body)
