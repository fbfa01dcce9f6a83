"""What a wire format needs: a function that reads, and a function that writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from service.predicting.answer import Answer
from service.predicting.query import Query

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv"

# The names of the codecs.
FORMATS = {JSON: "json", ARROW: "arrow", CSV: "csv"}

# An answer of `:predict-file`: lines of JSON while the service works, and after the
# last of them the file.
PROGRESS = "application/vnd.tfbbb.progress"

Body = bytes | bytearray


class Written(NamedTuple):
    """An answer as it is sent."""

    body: bytes
    media_type: str
    headers: Mapping[str, str] | None = None


# Reading more text holds the interpreter for too long.
_LARGE_TEXT = 2**17


def is_large_text(body: Body, options: Mapping[str, object]) -> bool:
    """Whether reading a body of text takes the interpreter long."""
    return len(body) > _LARGE_TEXT


@dataclass(frozen=True)
class Codec:
    """A wire format of predictions.

    Requests are read from a body and from the options in the URL or in the headers. Of
    one that `is_large`, and of a large answer that `writes_text`, this would hold the
    interpreter so long that another process should do it.
    """

    read: Callable[[Body, Mapping[str, Any]], Query]
    write: Callable[[Answer], Written]
    is_large: Callable[[Body, Mapping[str, Any]], bool] = is_large_text
    writes_text: bool = True
