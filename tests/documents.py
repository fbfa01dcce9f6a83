"""The Markdown pages of the project, as its tests read them."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path
    for pattern in ("*.md", "docs/*.md", "docs/gallery/*.md", "benchmarks/*.md")
    for path in sorted(ROOT.glob(pattern))
}
# Their own programs draw the pictures that they show.
PICTURED_PAGES = ("docs/evidence.md", "docs/inference.md")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str, heading: str = "") -> list[str]:
    """Returns the fenced blocks of a language, below a heading if one is given."""
    text = PAGES[page].read_text()
    if heading:
        _, found, text = text.partition(f"\n{heading}\n")
        assert found, f"{page} has no heading {heading!r}"
        text = re.split(r"^#{1,2} ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [block for name, block in _FENCED.findall(text) if name == language]


def run_programs(page: str) -> dict[str, Any]:
    """Runs the programs of a page in its order, in one namespace; returns that."""
    namespace: dict[str, Any] = {}
    for program in blocks(page, "python"):
        exec(compile(program, page, "exec"), namespace)
    return namespace


def pictures(page: str) -> list[str]:
    """Returns the names of the pictures beside a page that the page shows."""
    return re.findall(r"^!\[[^]]*\]\((\w+\.png)\)$", prose(page), re.MULTILINE)


def prose(page: str) -> str:
    """Returns a page without its fenced blocks."""
    return _FENCED.sub("", PAGES[page].read_text())
