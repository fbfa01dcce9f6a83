"""Browsers: the cookie with their session, and keys hidden in the log."""

import logging
from urllib.parse import parse_qs

from fastapi import Request, Response
from starlette.requests import HTTPConnection


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


def delete_cookies(request: Request, response: Response) -> None:
    """Removes the cookie, and that of an earlier release, which held the key."""
    name = cookie_name(request)
    for cookie in (name, name.replace("session", "key")):
        response.delete_cookie(
            cookie,
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
