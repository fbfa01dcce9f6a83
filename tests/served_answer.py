"""The answer of the service to a request, without its processes."""

from typing import Any

import orjson

from service.model_process.answer import Block, VersionName, compute, finish, prepare
from service.model_process.json_answer import write_json
from service.model_process.query import parse_query
from service.shared.settings import Settings


def served_answer(model: Any, body: dict[str, Any]) -> Any:
    """Returns the answer of an exported model to the body of a `:predict` request."""
    query = parse_query(orjson.dumps(body))
    request = prepare(VersionName("m", 1), model.manifest, query, Settings())
    (arrays,) = compute(model, [Block(request, slice(0, request.num_rows))])
    return orjson.loads(write_json(finish(request, [arrays])))
