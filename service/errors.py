import http
import logging
from typing import Any, ClassVar

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from tfbbb.export.input_error import InputError

logger = logging.getLogger(__name__)


class ErrorBody(BaseModel):
    """What went wrong, what was received and what to do."""

    error: str


class ServiceError(Exception):
    """An answer with an error status; its docstring describes it to clients."""

    status: ClassVar[int]


class InvalidRequest(ServiceError):
    """The request is malformed or does not fit the model; the message says where.

    Values so large that the model has no finite answer for them do not fit it.
    """

    status = 400


class UnknownModel(ServiceError):
    """There is no such model, or no such version of it."""

    status = 404


class RequestTooLarge(ServiceError):
    """The body, or rows × samples, is over the configured limit."""

    status = 413


class UnsupportedMediaType(ServiceError):
    """The body is not declared to be JSON."""

    status = 415


class Unavailable(ServiceError):
    """The model can't be loaded, or the service is not ready; the message says why."""

    status = 503


def responses(*errors: type[ServiceError]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an endpoint that may raise `errors`."""
    described: dict[int | str, dict[str, Any]] = {
        error.status: {"model": ErrorBody, "description": error.__doc__}
        for error in errors
    }
    # Also keeps FastAPI from documenting a 422, which is never sent.
    described["default"] = {"model": ErrorBody, "description": "Any other failure."}
    return described


def error_response(
    status: int, message: str, headers: dict[str, str] | None = None
) -> Response:
    """The one shape of every error."""
    return Response(
        orjson.dumps({"error": message}), status, headers, "application/json"
    )


def answer_errors_in_one_shape(app: FastAPI) -> None:
    """Makes every failure of `app` a JSON object with the one key `error`."""

    @app.exception_handler(ServiceError)
    async def _service(request: Request, error: ServiceError) -> Response:
        return error_response(error.status, str(error))

    @app.exception_handler(InputError)
    async def _input(request: Request, error: InputError) -> Response:
        return error_response(InvalidRequest.status, str(error))

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = " ".join(map(str, first["loc"]))
        message = f"{place}: {first['msg']}. Received: {first['input']!r:.100}"
        return error_response(InvalidRequest.status, message)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        reason = http.HTTPStatus(error.status_code).phrase
        message = f"{reason}: {request.method} {request.url.path}; /docs lists the API."
        return error_response(error.status_code, message, dict(error.headers or {}))

    @app.exception_handler(ClientDisconnect)
    async def _disconnect(request: Request, error: ClientDisconnect) -> Response:
        return error_response(InvalidRequest.status, "The body ended too early.")

    @app.exception_handler(Exception)
    async def _bug(request: Request, error: Exception) -> Response:
        logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return error_response(500, "The service failed; its log says why.")
