"""The answer of the service to a request, without its processes."""

from types import SimpleNamespace
from typing import Any

import orjson

from service.model_process.abstention import abstain, check_abstention
from service.model_process.answer import compute, prepare
from service.model_process.json_answer import write_json
from service.model_process.query import parse_query
from service.shared.settings import Settings


def served_answer(model: Any, body: dict[str, Any]) -> Any:
    """Returns the answer of an exported model to the body of a `:predict` request."""
    version: Any = SimpleNamespace(name="m", number=1, load=lambda: model)
    query = parse_query(orjson.dumps(body))
    request = prepare(version, query, Settings())
    check_abstention(request)
    return orjson.loads(write_json(abstain(compute(request))))
