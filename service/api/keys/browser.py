"""Keys of browsers: from the URL into a cookie."""

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.requests import HTTPConnection

from service.api.keys.caller import get_caller


def cookie_name(connection: HTTPConnection) -> str:
    """Names the cookie by the port, which browsers don't tell cookies apart by."""
    return f"tfbbb-key-{connection.url.port or connection.url.scheme}"


async def open_documentation(request: Request) -> RedirectResponse:
    """Leads to the documentation; a key in the URL moves into a cookie first."""
    headers = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    response = RedirectResponse("docs", 303, headers)
    key = request.query_params.get("key")
    if key is not None and get_caller(request).key_id is not None:
        response.set_cookie(
            cookie_name(request),
            key,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
    return response
