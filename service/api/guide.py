"""`/guide`: the documentation site, if it was built before the installation."""

import posixpath
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import service
from service.shared.errors import UnknownPage

# `make docs` builds it here, and the wheel includes it.
GUIDE = Path(service.__file__).parent / "guide"
# The site has no inline script, no inline style and no file of another origin.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# For people whose browser asks for HTML; programs get the JSON of every error.
_REFUSAL = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>No guide</title>
<h1>{title}</h1>
<p>{message}</p>
<p><a href="{back}">{link}</a></p>
</html>
"""

router = APIRouter(prefix="/guide", include_in_schema=False)


def _refuse(
    request: Request, title: str, message: str, back: str, link: str
) -> Response:
    """Returns a page that says what is missing; raises `UnknownPage` for a program."""
    if "text/html" not in request.headers.get("accept", ""):
        raise UnknownPage(f"{message} Received: {request.url.path!r:.200}")
    page = _REFUSAL.format(title=title, message=message, back=back, link=link)
    return HTMLResponse(page, UnknownPage.status, _HEADERS)


def _refuse_without_guide(request: Request) -> Response:
    return _refuse(
        request,
        "No guide",
        "This installation has no guide: run `make docs` in the source tree, and "
        "start or install the service from there.",
        "/",
        "To the page of the service",
    )


def _has_guide() -> bool:
    return (GUIDE / "index.html").is_file()


@router.get("")
async def open_guide(request: Request) -> Response:
    """Redirects to the first page, so that its relative links lead somewhere."""
    if not _has_guide():
        return _refuse_without_guide(request)
    return RedirectResponse("guide/index.html", 303)


@router.get("/{path:path}")
async def get_guide_file(path: str, request: Request) -> Response:
    """Returns a file of the site."""
    if not _has_guide():
        return _refuse_without_guide(request)
    name = posixpath.normpath(path) if path else "index.html"
    files = StaticFiles(directory=GUIDE)
    try:
        response = await files.get_response(name, request.scope)
    except HTTPException as error:
        if error.status_code != 404:
            raise
        return _refuse(
            request,
            "No such page",
            "The guide has no such page: /guide opens its first one.",
            "/guide",
            "To the first page",
        )
    response.headers.update(_HEADERS)
    return response
