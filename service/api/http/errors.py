"""Errors as HTTP responses of one shape, and their OpenAPI descriptions."""

import errno
import http
import logging
from collections.abc import Iterator, Mapping

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from service.api.http.requests import HEADER
from service.shared import errors
from service.shared.database import LOST
from service.shared.errors import (
    InsufficientStorage,
    InvalidRequest,
    ServiceError,
    Unavailable,
)
from tfbbb.base.suggestions import field_paths
from tfbbb.base.types import JsonObject
from tfbbb.base.validation_errors import describe_validation_error, field_path

logger = logging.getLogger(__name__)


def _list_codes() -> str:
    """Returns each code with its status and what is wrong, as Markdown."""
    lines = {
        f"- `{error.code}` ({error.status}): {error.__doc__.splitlines()[0]}"
        for error in vars(errors).values()
        if hasattr(error, "code")
    }
    return "\n".join(["What is wrong, in a word for programs:", "", *sorted(lines)])


class ErrorBody(BaseModel):
    """The error, what was received, and what to do."""

    error: str
    code: str = Field(description=_list_codes())
    field: str | None = Field(
        description="The path of the field that is wrong, or the name of a column."
    )


# Every operation has it, so that FastAPI documents no 422, which the API never sends.
ANY_ERROR: JsonObject = {
    "description": "An error; its status is that of its `code`.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}
    },
}


def _describe_unreadable(cause: BaseException) -> str:
    """Describes why Python's parser could not read a JSON body."""
    if isinstance(cause, RecursionError):
        return "it is nested too deeply."
    if type(cause) is ValueError:
        return "it holds an integer with too many digits."
    return str(cause)


def _body_fields(request: Request) -> Iterator[str]:
    """Yields the paths of the fields of the body that an endpoint takes."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    for parameter in getattr(dependant, "body_params", ()):
        model = parameter.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from field_paths(model)


def error_response(
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    code: str | None = None,
    field: str | None = None,
) -> Response:
    """Returns a response as `ErrorBody` describes it; the status gives the code."""
    body = error_body(message, code or http.HTTPStatus(status).name.lower(), field)
    return Response(body, status, headers, "application/json")


def error_body(message: str, code: str, field: str | None = None) -> bytes:
    """Returns the body of an error, as `ErrorBody` describes it."""
    return orjson.dumps({"error": message, "code": code, "field": field})


def service_error_response(error: ServiceError) -> Response:
    """Returns the response of an error."""
    return error_response(
        error.status, str(error), error.headers, error.code, error.field
    )


def answer_errors_in_one_shape(app: FastAPI) -> None:
    """Makes every error of `app` a JSON object as `ErrorBody` describes it."""

    @app.exception_handler(ServiceError)
    async def _service(request: Request, error: ServiceError) -> Response:
        return service_error_response(error)

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        message = describe_validation_error(first, known=_body_fields(request))
        return service_error_response(InvalidRequest(message, field_path(first)))

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        if error.status_code == http.HTTPStatus.NO_CONTENT:
            return Response(status_code=error.status_code)
        message = error.detail
        # The cause is FastAPI's reason; the detail of Starlette says too little.
        if error.__cause__ is not None:
            message = f"{message}: {_describe_unreadable(error.__cause__)}"
        if message == http.HTTPStatus(error.status_code).phrase:
            where = f"{request.method} {request.url.path}"
            message = f"{message}: {where}; /docs lists the API."
        return error_response(error.status_code, message, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def _disconnect(request: Request, error: ClientDisconnect) -> Response:
        return service_error_response(InvalidRequest("The body ended too early."))

    @app.exception_handler(Exception)
    async def _bug(request: Request, error: Exception) -> Response:
        # This response is made outside all middleware.
        request_id: str = request.state.request_id
        caller = getattr(request.state, "caller", None)
        logger.error(
            "%s %s failed, request %s, key %r",
            request.method,
            request.url.path,
            request_id,
            None if caller is None else caller.name,
            exc_info=error,
        )
        return error_response(
            500, "The service failed; its log has the reason.", {HEADER: request_id}
        )


DATABASE_OUTAGES = (*LOST, PoolTimeoutError)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


def outage(error: Exception) -> ServiceError | None:
    """Returns what clients get while the database or the disk fails; None for bugs."""
    reason = without_statement(error)
    if isinstance(error, OSError):
        is_full, refused = error.errno in _FULL, error.errno in _REFUSED
        why = error.strerror or "It is refused"
    else:
        is_full = "disk is full" in reason or "disk full" in reason.lower()
        refused = "readonly" in reason or "read-only" in reason
        why = "The database is read-only"
    if is_full:
        return InsufficientStorage(
            "The disk of the service is full; its operator must free space, or delete "
            "datasets and jobs."
        )
    if refused:
        return Unavailable(
            f"The service cannot write: {why[0].lower()}{why[1:]}; its operator must "
            "check the disk or the store."
        )
    if isinstance(error, OSError):
        return None
    if "malformed" in reason or "not a database" in reason:
        return Unavailable(
            f"The database is damaged ({reason}): its operator must stop the service, "
            "restore a backup and start the service again."
        )
    found = Unavailable("The database does not answer; retry in a few seconds.")
    found.headers = {"Retry-After": "5"}
    return found


def answer_outage(request: Request, error: Exception) -> Response:
    """Answers 503 or 507 while the database or the disk fails; else reraises."""
    found = outage(error)
    if found is None:
        raise error
    reason = without_statement(error)
    logger.error("%s %s: %s", request.method, request.url.path, reason)
    return service_error_response(found)


def without_statement(error: Exception) -> str:
    """Returns the message of a database error, without its statement and values."""
    return str(getattr(error, "orig", error))
