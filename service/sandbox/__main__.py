"""Does one task on a file: `python -m service.sandbox NAME`.

A hostile file may exhaust the memory or time of its reader, or crash it: therefore a
process of its own reads it, under limits. The task is JSON on standard input. Each line
on standard output is JSON: `progress`, as often as there is some, and at last `result`
or `error`.
"""

import os
import sys
from collections.abc import Callable, Mapping

import orjson
import pyarrow as pa
from pydantic import BaseModel

from service.sandbox.inspect import inspect, preview
from service.sandbox.limits import hide_pandas
from service.shared.errors import InvalidRequest, InvalidTable, ServiceError
from service.shared.sandbox import PredictTask, PreviewTask, Task
from tfbbb.base.types import JsonObject
from tfbbb.export.manifest import InputError
from tfbbb.tables import TableError

# Is called with the progress of a task.
Report = Callable[[JsonObject], object]


def run(name: str, text: str | bytes, report: Report) -> JsonObject:
    """Does a task; returns its `result`, or its `error`."""
    task_class, function = _FUNCTIONS[name]
    task = task_class.model_validate_json(text)
    try:
        return {"result": function(task, report).model_dump(mode="json")}
    except TableError as error:
        message = str(error).replace(str(task.path), task.name)[:2000]
        found: ServiceError = InvalidTable(message)
    except InputError as error:
        found = InvalidRequest(str(error), error.column)
    except ServiceError as error:
        found = error
    kind = type(found).__name__
    return {"error": {"kind": kind, "message": str(found), "field": found.field}}


def _predict(task: PredictTask, report: Report) -> BaseModel:
    # Imported late: other tasks need no model.
    from service.sandbox.predict import predict

    return predict(task, report)


_FUNCTIONS: Mapping[str, tuple[type[Task], Callable[..., BaseModel]]] = {
    "inspect": (Task, lambda task, _: inspect(task)),
    "preview": (PreviewTask, lambda task, _: preview(task)),
    "predict": (PredictTask, _predict),
}


def main() -> None:
    """Does the task of standard input."""
    hide_pandas()
    # What a library prints must not get among the lines.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(line: JsonObject) -> None:
        output.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        output.flush()

    task = sys.stdin.buffer.read()
    try:
        send(run(sys.argv[1], task, lambda progress: send({"progress": progress})))
    except (MemoryError, pa.ArrowMemoryError):
        sys.exit("out of memory")


if __name__ == "__main__":
    main()
    # Readers leave threads behind, for which an ordinary exit may wait for ever.
    os._exit(0)
