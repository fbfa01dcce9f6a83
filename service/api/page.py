"""`/`: the page for people who do not write code, from the files of `service/web`."""

import hashlib
import mimetypes
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Self

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

_FILES = Path(str(files("service"))) / "web"
_SHELL = "index.html"
_HEADERS = {
    # Only files of this service, no inline script or style, and no text becomes HTML.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class PageFiles:
    """The files of the page.

    The modules import each other by relative paths, so one digest of all files in the
    path of each makes them immutable, without a build that renames them. `shell` is
    the HTML of `/`, and `contents` has the other files by name.
    """

    shell: bytes
    digest: str
    contents: dict[str, bytes]

    @classmethod
    def read(cls, root: Path = _FILES) -> Self:
        """Reads the files of a directory."""
        found = sorted(path for path in root.rglob("*") if path.is_file())
        contents = {p.relative_to(root).as_posix(): p.read_bytes() for p in found}
        digest = hashlib.sha256()
        for name, content in contents.items():
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        text = digest.hexdigest()[:16]
        shell = contents.pop(_SHELL).replace(b"{digest}", text.encode())
        return cls(shell, text, contents)


_PAGE = PageFiles.read()

router = APIRouter(include_in_schema=False)


@router.get("/")
async def show_page(request: Request) -> Response:
    """Returns the page."""
    headers = {"Cache-Control": "no-cache", "ETag": f'"{_PAGE.digest}"'} | _HEADERS
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(_PAGE.shell, 200, headers, "text/html; charset=utf-8")


@router.get("/web/{digest}/{name:path}")
async def get_page_file(digest: str, name: str) -> Response:
    """Returns a file that the page loads."""
    content = _PAGE.contents.get(name)
    if digest != _PAGE.digest or content is None:
        raise HTTPException(404)
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if media_type == "application/javascript":  # On some systems.
        media_type = "text/javascript"
    return Response(
        content, headers={"Cache-Control": _FOR_EVER} | _HEADERS, media_type=media_type
    )
