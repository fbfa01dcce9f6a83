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


@dataclass(frozen=True)
class Codec:
    """A wire format of predictions.

    Requests are read from a body and from the options in the URL or in the headers. A
    body with more `text_bytes` than `most`, and a large answer that `writes_text`,
    would hold the interpreter so long that another process should read or write it.
    """

    read: Callable[[Body, Mapping[str, Any]], Query]
    write: Callable[[Answer], Written]
    text_bytes: Callable[[Body, Mapping[str, Any]], int] = lambda body, _: len(body)
    most: int = 2**17
    writes_text: bool = True
