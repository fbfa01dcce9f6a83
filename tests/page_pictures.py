"""Draws the pictures of the pages anew, and records what chapters of the course print.

python -m tests.page_pictures                      those of all pages
python -m tests.page_pictures docs/evidence.md     those of one page
"""

import shutil
import sys

import matplotlib

from docs.site.build import BUILD
from docs.site.programs import run_page
from tests.documents import COURSE, PAGES, PICTURED_PAGES, pictures


def record(page: str) -> None:
    """Runs the programs of a page and copies what they draw and print to the page."""
    folder = run_page(page, BUILD / "pages", again=False)
    for name in pictures(page):
        shutil.copy(folder / name, PAGES[page].with_name(name))
    if page in COURSE:
        shutil.copy(folder / "page.md", PAGES[page])


if __name__ == "__main__":
    matplotlib.use("Agg")
    for each in sys.argv[1:] or PICTURED_PAGES:
        record(each)
