"""The answer of the service to a request, without its processes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from service.predicting.answer import Block, VersionName, compute, finish, prepare
from service.predicting.codecs import CODECS
from service.predicting.codecs.codec import Written
from service.shared.settings import Settings

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def served_answer(model: Any, body: dict[str, Any]) -> Any:
    """Returns the answer of an exported model to the body of a `:predict` request."""
    return orjson.loads(served_body(model, "json", orjson.dumps(body)))


def served_body(
    model: Any, codec: str, body: bytes, options: Mapping[str, Any] = NO_OPTIONS
) -> bytes:
    """Returns the body of an answer in a wire format to a body in the same format."""
    return served(model, codec, body, options).body


def served(
    model: Any, codec: str, body: bytes, options: Mapping[str, Any] = NO_OPTIONS
) -> Written:
    """Returns an answer in a wire format to a body in the same format."""
    query = CODECS[codec].read(body, options)
    request = prepare(VersionName("m", 1), model.manifest, query, Settings())
    (arrays,) = compute(model, [Block(request, slice(0, request.num_rows))])
    return CODECS[codec].write(finish(request, [arrays]))
