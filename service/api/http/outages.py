"""Error responses while the database or the disk fails."""

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
    """Answers 503, or 507 if the disk of the SQLite file is full."""
    reason = without_statement(error)
    logger.error("%s %s: %s", request.method, request.url.path, reason)
    if isinstance(error, DatabaseFileError):
        return error_response(503, reason, _AGAIN)
    if "disk is full" in reason or "disk full" in reason.lower():
        return _full()
    if "readonly" in reason or "read-only" in reason:
        return _refused("the database is read-only")
    return error_response(
        503, "The database does not answer; retry in a few seconds.", _AGAIN
    )


def without_statement(error: Exception) -> str:
    """Returns the message of a database error, without its statement and values."""
    return str(getattr(error, "orig", error))


def answer_disk_outage(request: Request, error: OSError) -> Response:
    """Answers 507 if the disk is full, 503 if it is not writable; else reraises."""
    if error.errno not in (*_FULL, *_REFUSED):
        raise error
    logger.error("%s %s: %s", request.method, request.url.path, error)
    if error.errno in _FULL:
        return _full()
    return _refused((error.strerror or "it is refused").lower())


def _full() -> Response:
    return error_response(
        507,
        "The disk of the service is full; its operator must free space, or delete "
        "datasets and jobs.",
    )


def _refused(reason: str) -> Response:
    return error_response(
        503, f"The service cannot write: {reason}; its operator must check the disk."
    )
