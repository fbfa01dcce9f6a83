"""The Markdown pages of the project, as its tests read them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tfbbb.tables.writing import write_table

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md")
    for path in sorted(ROOT.glob(pattern))
}
# Its programs ask a running service.
CLIENT_PAGE = "docs/service.md"
GALLERY = tuple(page for page in PAGES if page.startswith("docs/gallery/"))
COURSE = tuple(page for page in PAGES if page.startswith("docs/course/"))
# Their own programs draw the pictures that they show.
PICTURED_PAGES = (
    "docs/evidence.md",
    "docs/inference.md",
    "docs/uncertainty.md",
    "docs/which.md",
    *GALLERY,
    *COURSE,
)
# The sizes of a program, which its short form makes smaller.
_SIZE = re.compile(r"""\b((?:epochs|rounds|steps|draws)"?(?: = |=|: ))\d+""")
# An estimator that is given nothing takes a thousand steps of the default recipe.
_ESTIMATOR = ("Regressor()", "Regressor(steps=4, members=1, likelihood='normal')")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str, heading: str = "") -> list[str]:
    """Returns the fenced blocks of a language, below a heading if one is given."""
    text = PAGES[page].read_text()
    if heading:
        _, found, text = text.partition(f"\n{heading}\n")
        assert found, f"{page} has no heading {heading!r}"
        text = re.split(r"^#{1,2} ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [block for name, block in _FENCED.findall(text) if name == language]


def run_programs(page: str, *, short: bool = False) -> dict[str, Any]:
    """Runs the programs of a page in its order, in one namespace; returns that.

    Args:
        page: The page.
        short: Whether its sizes, such as `epochs=400`, become 4. What it asserts is
            then left out.
    """
    namespace: dict[str, Any] = {}
    for program in blocks(page, "python"):
        if short:
            program = _SIZE.sub(r"\g<1>4", program).replace(*_ESTIMATOR)
        exec(compile(program, page, "exec", optimize=int(short)), namespace)
    return namespace


def pictures(page: str) -> list[str]:
    """Returns the names of the pictures beside a page that the page shows."""
    return re.findall(r"^!\[[^]]*\]\((\w+\.png)\)$", prose(page), re.MULTILINE)


def write_houses(directory: Path) -> None:
    """Writes the tables that the pages name."""
    write_table(_houses(400, 0), directory / "houses.csv")
    write_table(_houses(9, 1).drop_columns("price"), directory / "more.csv")


def _houses(rows: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    area = generator.uniform(30, 250, rows)
    street = generator.choice(["mill lane", "park road"], rows)
    price = 1000 * area + generator.normal(0, 8000, rows)
    return pa.table({"area": area, "street": street, "price": price})


def prose(page: str) -> str:
    """Returns a page without its fenced blocks."""
    return _FENCED.sub("", PAGES[page].read_text())
