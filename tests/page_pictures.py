"""Draws the pictures of the pages anew, by the programs of the pages.

python -m tests.page_pictures                      draws those of all pages
python -m tests.page_pictures docs/evidence.md     draws those of one page
"""

import contextlib
import shutil
import sys
import tempfile

import matplotlib

from tests.documents import PAGES, PICTURED_PAGES, pictures, run_programs


def draw_pictures(page: str) -> None:
    """Runs the programs of a page and copies what they draw beside the page."""
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        run_programs(page)
        for name in pictures(page):
            shutil.copy(name, PAGES[page].with_name(name))


if __name__ == "__main__":
    matplotlib.use("Agg")
    for each in sys.argv[1:] or PICTURED_PAGES:
        draw_pictures(each)
