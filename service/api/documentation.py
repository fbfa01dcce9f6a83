"""`/docs`: Swagger UI, without files of other origins."""

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse

_FILES = Path(str(files("fastapi_swagger") / "resources"))
# Allows only what Swagger UI needs, and no other origin: the page holds a key.
_POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{script}'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter(prefix="/docs", include_in_schema=False)


@router.get("")
async def show_documentation() -> Response:
    """Returns a page that describes the API and can send requests."""
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title="tfbbb",
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url="docs/favicon-32x32.png",
    )
    (script,) = re.findall(rb"<script>(.*?)</script>", bytes(page.body), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    page.headers["Content-Security-Policy"] = _POLICY.format(script=digest)
    page.headers["Referrer-Policy"] = "no-referrer"
    page.headers["X-Content-Type-Options"] = "nosniff"
    return page


@router.get("/{file}")
async def get_file(
    file: Literal["swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"],
) -> FileResponse:
    """Returns a file that the page loads."""
    return FileResponse(_FILES / file)
