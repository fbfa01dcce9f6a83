"""Builds the documentation site: runs the programs of the pages, then Sphinx.

    python -m docs.site.build                 builds service/guide
    python -m docs.site.build docs/keras.md   runs the programs of one page only

Every page gets the output of its programs, and the pictures that they draw. What fails
the build: a program that fails, a broken link, a docstring that is not well-formed, and
a page that loads anything from elsewhere or has an inline script or style.
"""

import argparse
import multiprocessing
import os
import re
import shutil
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import matplotlib

from docs.site.links import page_of_site
from docs.site.notebooks import write_notebook
from docs.site.programs import for_site, run_page
from docs.site.reference import write_reference
from tests.documents import COURSE, GALLERY, PAGES, ROOT, blocks
from tfbbb.base.extras import import_extra

BUILD = ROOT / "build" / "docs"
SITE = ROOT / "service" / "guide"
CONTENTS = {
    "Use it": ("tables", "keras", "sklearn", "service"),
    "Choose and understand": (
        *("which", "uncertainty", "worse_than_dense", "inference", "evidence"),
        *("coming_from", "tfp_layers", "glossary"),
    ),
    "Course": ("course", *(page_of_site(page)[:-3] for page in COURSE)),
    "Gallery": ("gallery", *(page_of_site(page)[:-3] for page in GALLERY)),
    "Operate": ("operations", "saved_models"),
    "Reference": ("api/index", "benchmarks/README", "benchmarks/RESULTS"),
    "Inside": ("architecture", "CONTRIBUTING", "SECURITY", "CHANGELOG"),
}
# Inline styles of Furo and Sphinx, as attributes or left out.
_STYLES_OF_THE_THEME = {
    r' style="opacity: 50%"': ' opacity="50%"',
    r'(<svg[^>]*) style="display: none;"': r'\1 display="none"',
    r'(<t(?:able|d)\b[^>]*?) style="[^"]*"': r"\1",
}
# What Sphinx writes for itself and for other sites.
_NOT_FOR_READERS = (".buildinfo*", "_sources", "objects.inv")


def write_sources(pages_to_run: list[str], *, again: bool) -> list[str]:
    """Writes everything that Sphinx reads to the folder `build/docs/source`.

    Returns the pages whose programs fail.
    """
    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    for pattern in ("docs/*.svg", "docs/**/*.png"):
        for picture in ROOT.glob(pattern):
            to = source / page_of_site(str(picture.relative_to(ROOT)))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, to)
    ran = run_pages([x for x in pages_to_run if blocks(x, "python")], again=again)
    for page, path in PAGES.items():
        to = source / page_of_site(page)
        to.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        if (folder := ran.get(page)) is not None:
            text = (folder / "page.md").read_text()
            for picture in folder.glob("*.png"):
                shutil.copy(picture, to.parent)
        shown = for_site(page, text)
        if page in COURSE:
            shown = shown.replace("\n", f"\n\n{write_notebook(page, text, to)}\n", 1)
        to.write_text(shown)
    write_reference(source / "api")
    with (source / "index.md").open("a") as index:
        for caption, entries in CONTENTS.items():
            lines = "\n".join(entries)
            options = f":caption: {caption}\n:hidden:"
            index.write(f"\n```{{toctree}}\n{options}\n\n{lines}\n```\n")
    return [page for page, folder in ran.items() if folder is None]


def run_pages(pages: list[str], *, again: bool) -> dict[str, Path | None]:
    """Runs the programs of pages, a page on each processor at a time.

    Returns the folder of each page, as `run_page` does; None if a program fails.
    """
    if not pages:
        return {}
    processors = min(len(pages), os.cpu_count() or 1)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processors, spawn) as pool:
        return dict(zip(pages, pool.map(partial(_run, again), pages), strict=True))


def _run(again: bool, page: str) -> Path | None:
    matplotlib.use("Agg")
    try:
        return run_page(page, BUILD / "pages", again=again)
    except Exception:
        traceback.print_exc()
        return None


def check_self_contained(html: Path) -> list[str]:
    """Returns what the policy of `service/api/pages.py` would forbid in the pages."""
    refused = {
        "an inline script": re.compile(r"<script(?![^>]*\bsrc=)"),
        "an inline style": re.compile(r"<style|<[^>]*\sstyle="),
        "an inline handler": re.compile(r"<[^>]*\son[a-z]+="),
        "a file of another origin": re.compile(
            r"<(?:script|img|link|iframe)[^>]*\s(?:src|href)=\"?(?:https?:)?//"
        ),
    }
    of_styles = re.compile(r"(?:url\(|@import )[\"']?(?:https?:)?//\S*")
    faults = [
        f"{path.relative_to(html)}: {fault}: {found[0]}"
        for path in sorted(html.rglob("*.html"))
        for fault, pattern in refused.items()
        for found in pattern.finditer(path.read_text())
    ]
    return faults + [
        f"{path.relative_to(html)}: a file of another origin: {found[0]}"
        for path in sorted(html.rglob("*.css"))
        for found in of_styles.finditer(path.read_text())
    ]


def build_pages(html: Path) -> list[str]:
    """Lets Sphinx write the pages into a folder; returns what is wrong with them."""
    shutil.rmtree(html, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    places = ["-d", str(BUILD / "doctrees"), "-c", str(Path(__file__).parent)]
    (sphinx,) = import_extra("docs", "sphinx.cmd.build")
    if sphinx.build_main([*options, *places, str(BUILD / "source"), str(html)]):
        return ["Sphinx has warnings, see above."]
    for path in html.rglob("*.html"):
        text = path.read_text()
        for style, replacement in _STYLES_OF_THE_THEME.items():
            text = re.sub(style, replacement, text)
        path.write_text(text)
    add_frames(html, BUILD / "source")
    return check_self_contained(html)


def add_frames(html: Path, source: Path) -> None:
    """Gives a picture `name.png` its frames `name=value.png`, for `frames.js`."""
    values: dict[str, list[str]] = {}
    for frame in source.rglob("*=*.png"):
        name, _, value = frame.stem.partition("=")
        values.setdefault(name, []).append(value)
        shutil.copy(frame, html / "_images")
    for path in html.rglob("*.html") if values else ():
        text = path.read_text()
        for name, found in values.items():
            data = f' data-values="{" ".join(sorted(found, key=float))}"'
            text = re.sub(rf'src="[^"]*_images/{name}\.png"', rf"\g<0>{data}", text)
        path.write_text(text)


def main() -> None:
    """Builds the site."""
    parser = argparse.ArgumentParser(description="Builds the documentation site.")
    parser.add_argument("pages", nargs="*", help="run the programs of these pages only")
    parser.add_argument(
        "--without-programs", action="store_true", help="run no program of a page"
    )
    parser.add_argument(
        "--again", action="store_true", help="run unchanged pages again, too"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=SITE,
        help=f"folder of the site (default: {SITE})",
    )
    options = parser.parse_args()
    import_extra("docs", "sphinx", "latex2mathml", "myst_parser", "furo")
    pages = [] if options.without_programs else options.pages or list(PAGES)
    failed = write_sources(pages, again=options.again)
    faults = build_pages(BUILD / "html")
    faults += [f"A program of {page} fails, see above." for page in failed]
    if faults:
        sys.exit("\n".join(faults))
    # The site so far stays until the new one is without faults.
    shutil.rmtree(options.output, ignore_errors=True)
    unread = shutil.ignore_patterns(*_NOT_FOR_READERS)
    shutil.copytree(BUILD / "html", options.output, ignore=unread)


if __name__ == "__main__":
    main()
