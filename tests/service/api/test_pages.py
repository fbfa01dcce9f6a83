"""The files of the page and the guide; `tests/service/web` drives a browser."""

import hashlib
import re
from pathlib import Path

import pytest

from service.api import pages
from tests.service.serving import refusal, visiting

WEB = Path(__file__).parents[3] / "service" / "web"
# As published on the npm registry, in the package `uplot` 1.6.32.
VENDORED = {
    "uplot-1.6.32.js": (
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
    ),
    "uplot-1.6.32.css": (
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
    ),
}


def files_of(shell):
    return re.findall(r'(?:src|href)="(web/[^"]+)"', shell)


@pytest.fixture
def visitor(client):
    """Somebody without a key."""
    with visiting(client) as visitor:
        yield visitor


def test_the_page_needs_no_key_and_names_files_that_exist(visitor):
    page = visitor.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    names = files_of(page.text)
    assert len(names) == 5
    for name in names:
        assert visitor.get(f"/{name}").status_code == 200


def test_its_files_are_immutable_and_the_page_is_revalidated(visitor):
    page = visitor.get("/")
    assert page.headers["cache-control"] == "no-cache"
    script = visitor.get(f"/{files_of(page.text)[-1]}")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert visitor.get(f"/web/{'0' * 16}/main.js").status_code == 404


def test_a_change_of_any_file_changes_every_address(tmp_path):
    (tmp_path / "a.js").write_text("1")
    before = pages._digest(tmp_path)
    (tmp_path / "a.js").write_text("2")
    assert pages._digest(tmp_path) != before


def test_its_policy_allows_nothing_inline_and_nothing_from_elsewhere(visitor):
    page = visitor.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"<script>|<style|style=|\son\w+=", page.text)


def test_no_path_leads_out_of_the_files_of_the_page(visitor):
    digest = files_of(visitor.get("/").text)[0].split("/")[1]
    for name in ("../api/pages.py", "%2e%2e/api/pages.py", ""):
        assert visitor.get(f"/web/{digest}/{name}").status_code in (401, 404)


def test_vendored_files_are_those_of_their_packages():
    vendored = {path.name for path in (WEB / "vendor").iterdir()}
    assert vendored == {*VENDORED, "uplot-1.6.32.license.txt"}
    for name, digest in VENDORED.items():
        content = (WEB / "vendor" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest


def test_no_module_makes_html_of_text_or_names_another_origin():
    modules = [path for path in WEB.rglob("*.js") if path.parent.name != "vendor"]
    assert len(modules) > 20
    for path in modules:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|https?://",
            text,
        )
        assert not found, path


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of two pages, beside a file that is no part of it."""
    (tmp_path / "secret.html").write_text("secret")
    site = tmp_path / "guide"
    (site / "api").mkdir(parents=True)
    (site / "index.html").write_text("<h1>tfbbb</h1>")
    (site / "api" / "index.html").write_text("<h1>API reference</h1>")
    monkeypatch.setattr(pages, "GUIDE", site)
    return site


@pytest.mark.usefixtures("site")
def test_the_guide_opens_without_a_key(visitor):
    response = visitor.get("/guide", follow_redirects=True)
    assert response.url.path == "/guide/index.html"
    assert response.text == "<h1>tfbbb</h1>"
    assert visitor.get("/guide/api/index.html").text == "<h1>API reference</h1>"
    # Its pages may load files of the service alone.
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("path", ["no.html", "api", "api/..%2F..%2Fsecret.html"])
def test_other_paths_are_no_pages(visitor, path):
    request = visitor.build_request("GET", "/guide/x")
    request.url = request.url.copy_with(raw_path=f"/guide/{path}".encode())
    response = visitor.send(request)
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


def test_an_installation_without_a_guide_says_so(visitor, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "GUIDE", tmp_path / "missing")
    response = visitor.get("/guide", follow_redirects=True)
    assert "make docs" in refusal(response, 404)
