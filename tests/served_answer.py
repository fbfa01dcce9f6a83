"""The answer of the service to a request, without its processes."""

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import orjson

from service.model_process.abstention import abstain, check_abstention
from service.model_process.answer import compute, prepare
from service.model_process.codecs import CODECS
from service.shared.settings import Settings

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def served_answer(model: Any, body: dict[str, Any]) -> Any:
    """Returns the answer of an exported model to the body of a `:predict` request."""
    return orjson.loads(served_body(model, "json", orjson.dumps(body)))


def served_body(
    model: Any, codec: str, body: bytes, options: Mapping[str, Any] = NO_OPTIONS
) -> bytes | bytearray:
    """Returns the body of an answer in a wire format to a body in the same format."""
    version: Any = SimpleNamespace(name="m", number=1, load=lambda: model)
    request = prepare(version, CODECS[codec].read(body, options), Settings())
    check_abstention(request)
    return CODECS[codec].write(abstain(compute(request))).body
