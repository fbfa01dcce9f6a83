"""Links between the pages, and the paths that they name, lead somewhere."""

import re

import pytest

import tfbbb
from tests.documents import COURSE, GALLERY, PAGES, ROOT, prose

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.*)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
# A path of a file or folder, without placeholders such as `<name>`.
_PATH = re.compile(r"(?:benchmarks|docs|service|tests|tfbbb)/[\w./-]*")


def anchors(page):
    """Returns the anchors that GitHub gives the headings of a page."""
    texts = [
        heading.lower().replace("`", "") for heading in _HEADING.findall(prose(page))
    ]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_and_anchors_lead_somewhere(page):
    folder = PAGES[page].parent
    for link in _LINK.findall(_CODE.sub("", prose(page))):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (folder / path).resolve() if path else PAGES[page]
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(str(target.relative_to(ROOT))), link


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_the_text_exist(page):
    for code in _CODE.findall(prose(page)):
        if _PATH.fullmatch(code):
            assert (ROOT / code).exists(), code


def test_the_readme_links_to_every_page():
    links = set(_LINK.findall(prose("README.md")))
    assert PAGES.keys() - {"README.md", *GALLERY, *COURSE} <= links


@pytest.mark.parametrize(
    ("contents", "pages"), [("docs/gallery.md", GALLERY), ("docs/course.md", COURSE)]
)
def test_tables_of_contents_link_to_their_pages(contents, pages):
    links = {f"docs/{link}" for link in _LINK.findall(prose(contents))}
    assert set(pages) <= links


def test_the_table_of_stability_has_every_public_name():
    rows = re.findall(
        r"^\| (?:stable|experimental) \| (.*) \|$",
        PAGES["docs/architecture.md"].read_text(),
        re.MULTILINE,
    )
    assert len(rows) == 2
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    public = {name for name in dir(tfbbb) if not name.startswith("__")}
    assert sorted(named) == sorted(public)
