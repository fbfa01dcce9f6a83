"""The Markdown pages of the project, as its tests read them."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path
    for pattern in ("*.md", "docs/*.md", "benchmarks/*.md")
    for path in sorted(ROOT.glob(pattern))
}
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str, heading: str = "") -> list[str]:
    """Returns the fenced blocks of a language, below a heading if one is given."""
    text = PAGES[page].read_text()
    if heading:
        _, found, text = text.partition(f"\n{heading}\n")
        assert found, f"{page} has no heading {heading!r}"
        text = re.split(r"^#{1,2} ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [block for name, block in _FENCED.findall(text) if name == language]


def prose(page: str) -> str:
    """Returns a page without its fenced blocks."""
    return _FENCED.sub("", PAGES[page].read_text())
