"""Files for browsers: the page at `/` and the guide; the description of the API."""

import base64
import hashlib
import mimetypes
import posixpath
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

import service
from service.api.feedback.endpoints import FeedbackRequest
from service.api.http.errors import ErrorBody
from service.api.http.prefix import prefix_of
from service.api.predictions.schemas import PredictRequest
from service.predicting.codecs.open_inference import InferRequest
from tfbbb.base.types import JsonObject

_ROOT = Path(service.__file__).parent
_WEB = _ROOT / "web"
# `make docs` builds it here, and the wheel includes it.
GUIDE = _ROOT / "guide"
_SWAGGER = Path(str(files("fastapi_swagger") / "resources"))
# Only files of this service, and no inline script or style.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# No text becomes HTML.
_POLICY_OF_PAGE = f"{_POLICY}; require-trusted-types-for 'script'; trusted-types 'none'"
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
# On some systems it is `application/javascript`.
mimetypes.add_type("text/javascript", ".js")

router = APIRouter(include_in_schema=False)


def _protected(response: Response, policy: str = _POLICY) -> Response:
    response.headers["Content-Security-Policy"] = policy
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


async def _file(directory: Path, name: str, request: Request) -> Response:
    found = StaticFiles(directory=directory)
    return await found.get_response(posixpath.normpath(name), request.scope)


def _digest(directory: Path) -> str:
    """Returns a digest of all files, which is in the path of each.

    The modules of the page import each other by relative paths, so their addresses
    change with any of them, without a build that renames them.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


_DIGEST = _digest(_WEB)
_SHELL = (_WEB / "index.html").read_text("utf-8").replace("{digest}", _DIGEST)


@router.get("/")
async def show_page() -> Response:
    """Returns the page for people who do not write code."""
    headers = {"Cache-Control": "no-cache"}
    shell = Response(_SHELL, headers=headers, media_type="text/html; charset=utf-8")
    return _protected(shell, _POLICY_OF_PAGE)


@router.get("/web/{digest}/{name:path}")
async def get_page_file(digest: str, name: str, request: Request) -> Response:
    """Returns a file that the page loads."""
    if digest != _DIGEST:
        raise HTTPException(404)
    response = await _file(_WEB, name, request)
    response.headers.update(_FOR_EVER)
    return _protected(response, _POLICY_OF_PAGE)


@router.get("/guide")
async def open_guide() -> Response:
    """Redirects to the first page, so that its relative links lead somewhere."""
    return RedirectResponse("guide/index.html", 303)


@router.get("/guide/{path:path}")
async def get_guide_file(path: str, request: Request) -> Response:
    """Returns a file of the documentation site."""
    if not GUIDE.is_dir():
        raise HTTPException(
            404,
            "This installation has no guide: run `make docs` in the source tree, and "
            "start or install the service from there.",
        )
    return _protected(await _file(GUIDE, path or "index.html", request))


@router.get("/docs")
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
    policy = _POLICY.replace("script-src", f"script-src 'sha256-{digest}'")
    policy = policy.replace("style-src", "style-src 'unsafe-inline'")
    return _protected(page, policy)


@router.get("/openapi.json")
async def describe_api(request: Request) -> Response:
    """Returns the description of the API, with the path below which it is reached."""
    document, prefix = request.app.openapi(), prefix_of(request)
    if prefix:
        document = {**document, "servers": [{"url": prefix}]}
    return Response(orjson.dumps(document), media_type="application/json")


@router.get("/docs/{name}")
async def get_documentation_file(
    name: Literal["swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"],
    request: Request,
) -> Response:
    """Returns a file that the page of the API loads."""
    return _protected(await _file(_SWAGGER, name, request))


# Those that FastAPI does not read itself.
_MODELS: tuple[type[BaseModel], ...] = (
    ErrorBody,
    PredictRequest,
    FeedbackRequest,
    InferRequest,
)
# The keys of schemas that are made of others.
_REFERRING = {"$ref", "allOf", "anyOf", "oneOf"}


def describe_portably(app: FastAPI) -> None:
    """Makes the description of an application valid OpenAPI 3.1, for all generators."""
    made = app.openapi

    def openapi() -> JsonObject:
        if app.openapi_schema is None:
            document = made()
            _, described = models_json_schema(
                [(model, "validation") for model in _MODELS],
                ref_template="#/components/schemas/{model}",
            )
            document["components"]["schemas"] |= described["$defs"]
            app.openapi_schema = _portable(document)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _portable(part: Any) -> Any:
    """Returns a part of the description as older tools read it.

    - `itemSchema`, of the events of a stream, came with OpenAPI 3.2.
    - Generators refuse a default that is an object; its fields have their own.
    """
    if isinstance(part, list):
        return [_portable(item) for item in part]
    if not isinstance(part, dict):
        return part
    found = {name: _portable(value) for name, value in part.items()}
    if "itemSchema" in found:
        del found["itemSchema"]
        found["schema"] = {"type": "string"}
    if isinstance(found.get("default"), dict) and found.keys() & _REFERRING:
        del found["default"]
    return found
