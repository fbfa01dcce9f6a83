"""`/guide`: the documentation site, if it was built before the installation."""

import posixpath
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import service

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


@router.get("")
async def open_guide() -> Response:
    """Redirects to the first page, so that its relative links lead somewhere."""
    return RedirectResponse("guide/index.html", 303)


@router.get("/{path:path}")
async def get_guide_file(path: str, request: Request) -> Response:
    """Returns a file of the site."""
    if not GUIDE.is_dir():
        raise HTTPException(
            404,
            "This installation has no guide: run `make docs` in the source tree, and "
            "start or install the service from there.",
        )
    name = posixpath.normpath(path) if path else "index.html"
    files = StaticFiles(directory=GUIDE)
    response = await files.get_response(name, request.scope)
    response.headers.update(_HEADERS)
    return response
