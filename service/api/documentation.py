"""`/docs` and `/openapi.json`: the API for people and for programs."""

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.api.feedback.schemas import FeedbackRequest
from service.api.http.errors import ErrorBody
from service.api.predictions.schemas import PredictRequest
from service.predicting.codecs.open_inference import InferRequest
from tfbbb.base.types import JsonObject

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
    _, described = models_json_schema(
        [(model, "validation") for model in _MODELS],
        ref_template="#/components/schemas/{model}",
    )

    def openapi() -> JsonObject:
        if app.openapi_schema is None:
            document = made()
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
