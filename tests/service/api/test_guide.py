"""`/guide` serves the built site, and nothing else, to anyone."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.api import guide


@pytest.fixture
def anyone(client: httpx.Client) -> Iterator[httpx.Client]:
    """A client without a key."""
    with httpx.Client(base_url=client.base_url) as anyone:
        yield anyone


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site of two pages, beside a file that is no part of it."""
    (tmp_path / "secret.html").write_text("secret")
    site = tmp_path / "guide"
    (site / "api").mkdir(parents=True)
    (site / "index.html").write_text("<h1>tfbbb</h1>")
    (site / "api" / "index.html").write_text("<h1>API reference</h1>")
    monkeypatch.setattr(guide, "GUIDE", site)
    return site


@pytest.mark.usefixtures("site")
def test_the_guide_opens_without_a_key(anyone: httpx.Client) -> None:
    response = anyone.get("/guide", follow_redirects=True)
    assert response.url.path == "/guide/index.html"
    assert response.text == "<h1>tfbbb</h1>"
    assert anyone.get("/guide/api/index.html").text == "<h1>API reference</h1>"
    # Its pages may load files of the service alone.
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("path", ["no.html", "api", "api/..%2F..%2Fsecret.html"])
def test_other_paths_are_no_pages(anyone: httpx.Client, path: str) -> None:
    request = anyone.build_request("GET", "/guide/x")
    request.url = request.url.copy_with(raw_path=f"/guide/{path}".encode())
    response = anyone.send(request)
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


def test_an_installation_without_a_guide_says_so(
    anyone: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guide, "GUIDE", tmp_path / "missing")
    response = anyone.get("/guide", follow_redirects=True)
    assert response.status_code == 404
    assert "make docs" in response.json()["error"]
