"""The functions that the sandbox runs."""

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from service.sandbox.inspect import inspect, preview
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
