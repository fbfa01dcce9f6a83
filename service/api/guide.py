"""`/guide`: the documentation site, if it was built before the installation."""

import posixpath
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
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

router = APIRouter(prefix="/guide", include_in_schema=False)


def get_files(request: Request) -> StaticFiles:
    """Returns the files of the site; raises `UnknownPage` if there are none."""
    if not (GUIDE / "index.html").is_file():
        raise UnknownPage(
            "This installation has no guide: run `make docs` in the source tree, and "
            "start or install the service from there. "
            f"Received: {request.url.path!r:.200}"
        )
    return StaticFiles(directory=GUIDE)


Files = Annotated[StaticFiles, Depends(get_files)]


@router.get("")
async def open_guide(_files: Files) -> RedirectResponse:
    """Redirects to the first page, so that its relative links lead somewhere."""
    return RedirectResponse("guide/index.html", 303)


@router.get("/{path:path}")
async def get_guide_file(path: str, files: Files, request: Request) -> Response:
    """Returns a file of the site."""
    name = posixpath.normpath(path) if path else "index.html"
    try:
        response = await files.get_response(name, request.scope)
    except HTTPException as error:
        if error.status_code != 404:
            raise
        raise UnknownPage(
            "The guide has no such page: /guide opens its first one. "
            f"Received: {request.url.path!r:.200}"
        ) from None
    response.headers.update(_HEADERS)
    return response
