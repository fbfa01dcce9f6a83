"""Answers while the database or the disk does not work."""

import errno
import logging

from fastapi import Request, Response
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.api.http.errors import error_response
from service.shared.database import LOST, DatabaseFileError

logger = logging.getLogger(__name__)

DATABASE_OUTAGES = (*LOST, PoolTimeoutError)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_AGAIN = {"Retry-After": "5"}


def answer_database_outage(request: Request, error: Exception) -> Response:
    """503, or 507 if there is no room left for SQLite's file; the log has details."""
    reason = without_statement(error)
    logger.error("%s %s: %s", request.method, request.url.path, reason)
    if isinstance(error, DatabaseFileError):
        return error_response(503, reason, _AGAIN)
    if "disk is full" in reason or "disk full" in reason.lower():
        return _full()
    if "readonly" in reason or "read-only" in reason:
        return _refused("the database is read-only")
    return error_response(
        503, "The database does not answer; ask again in some seconds.", _AGAIN
    )


def without_statement(error: Exception) -> str:
    """The message of a database error, without its statement and values."""
    return str(getattr(error, "orig", error))


def answer_disk_outage(request: Request, error: OSError) -> Response:
    """507 if the disk is full, 503 if it can't be written; else the error goes on."""
    if error.errno not in (*_FULL, *_REFUSED):
        raise error
    logger.error("%s %s: %s", request.method, request.url.path, error)
    if error.errno in _FULL:
        return _full()
    return _refused((error.strerror or "it is refused").lower())


def _full() -> Response:
    return error_response(
        507,
        "The disk of the service is full: whoever runs it must make room, or delete "
        "datasets and jobs.",
    )


def _refused(reason: str) -> Response:
    return error_response(
        503, f"The service can't write: {reason}; whoever runs it must see."
    )
