"""Browsers: the cookie with the token of their session, and keys hidden in the log.

A token is signed by the stored hash of its key: `PREFIX.TIME.SIGNATURE`. So a session
needs no row in the database, holds no secret of the key, and ends with the key.
"""

import hashlib
import logging
import math
from urllib.parse import parse_qs

from fastapi import Request, Response
from itsdangerous import BadSignature, TimestampSigner
from starlette.requests import HTTPConnection

from service.shared.database.tables import Key

_SESSION_SECONDS = 7 * 24 * 3600


class InvalidTokenError(Exception):
    """The token of a session is forged or too old."""


def sign_token(key: Key) -> str:
    """Returns the token of a session that begins now."""
    return _signer(key).sign(key.prefix).decode()


def token_end(key: Key, token: str) -> float:
    """Returns when a session ends; raises `InvalidTokenError` if it has ended."""
    try:
        _, begin = _signer(key).unsign(token, _SESSION_SECONDS, return_timestamp=True)
    except BadSignature as error:
        raise InvalidTokenError from error
    return min(begin.timestamp() + _SESSION_SECONDS, key.expires_at or math.inf)


def _signer(key: Key) -> TimestampSigner:
    return TimestampSigner(
        key.secret_sha256, salt="tfbbb session", digest_method=hashlib.sha256
    )


def cookie_name(connection: HTTPConnection) -> str:
    """Returns the name of the cookie; it has the port, which browsers ignore."""
    return f"tfbbb-session-{connection.url.port or connection.url.scheme}"


def set_cookie(request: Request, response: Response, token: str) -> None:
    """Puts the token of a session into a cookie that scripts and sites cannot use."""
    response.set_cookie(
        cookie_name(request),
        token,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def delete_cookie(request: Request, response: Response) -> None:
    """Removes the cookie."""
    response.delete_cookie(
        cookie_name(request),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def hide_keys_in_access_log() -> None:
    """Makes the server log URLs without their keys."""
    logging.getLogger("uvicorn.access").addFilter(_hide_key)


def _hide_key(record: logging.LogRecord) -> bool:
    """Shortens `/?key=...`; uvicorn passes the path as the third argument."""
    if isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, version, status = record.args
        place, _, query = str(path).partition("?")
        if "key" in parse_qs(query, keep_blank_values=True):
            record.args = (client, method, f"{place}?key=...", version, status)
    return True
