"""Builds the documentation site: runs the programs of the pages, then Sphinx.

    python -m docs.site.build                 builds service/guide
    python -m docs.site.build docs/keras.md   runs the programs of one page only

Every page gets the output of its programs, and the pictures that they draw. What fails
the build: a program that fails, a broken link, a docstring that is not well-formed, and
a page that loads anything from elsewhere or has an inline script or style.
"""

import argparse
import re
import shutil
import sys
import traceback
from pathlib import Path

import matplotlib
from sphinx.cmd.build import build_main

from docs.site.links import page_of_site, with_site_links
from docs.site.programs import run_page
from docs.site.reference import write_reference
from tests.documents import GALLERY, PAGES, ROOT, blocks

BUILD = ROOT / "build" / "docs"
SITE = ROOT / "service" / "guide"
CONTENTS = {
    "Use it": ("tables", "keras", "sklearn", "service", "operations", "saved_models"),
    "Choose and understand": (
        *("which", "uncertainty", "inference", "evidence"),
        *("coming_from", "tfp_layers"),
    ),
    "Gallery": ("gallery", *(page_of_site(page)[:-3] for page in GALLERY)),
    "Reference": ("api/index", "benchmarks/README", "benchmarks/RESULTS"),
    "Inside": ("architecture", "CONTRIBUTING", "CHANGELOG"),
}
# What Sphinx writes for itself and for other sites.
_NOT_FOR_READERS = (".buildinfo*", "_sources", "objects.inv")


def write_sources(pages_to_run: list[str], *, again: bool) -> None:
    """Writes everything that Sphinx reads to the folder `build/docs/source`."""
    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    for pattern in ("docs/*.svg", "docs/**/*.png", "benchmarks/*.png"):
        for picture in ROOT.glob(pattern):
            to = source / page_of_site(str(picture.relative_to(ROOT)))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, to)
    failed = []
    for page, path in PAGES.items():
        to = source / page_of_site(page)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(with_site_links(page, path.read_text()))
        if page in pages_to_run and blocks(page, "python"):
            try:
                folder = run_page(page, BUILD / "pages", again=again)
            except Exception:
                traceback.print_exc()
                failed.append(page)
                continue
            shutil.copy(folder / "page.md", to)
            for picture in folder.glob("*.png"):
                shutil.copy(picture, to.parent)
    if failed:
        sys.exit(f"Programs of these pages failed, see above: {', '.join(failed)}")
    write_reference(source / "api")
    with (source / "index.md").open("a") as index:
        for caption, entries in CONTENTS.items():
            lines = "\n".join(entries)
            options = f":caption: {caption}\n:hidden:"
            index.write(f"\n```{{toctree}}\n{options}\n\n{lines}\n```\n")


def check_self_contained(html: Path) -> None:
    """Exits if a page is not what the policy of `service/api/guide.py` allows."""
    refused = {
        "an inline script": re.compile(r"<script(?![^>]*\bsrc=)"),
        "an inline style": re.compile(r"<style|<[^>]*\sstyle="),
        "an inline handler": re.compile(r"<[^>]*\son[a-z]+="),
        "a file of another origin": re.compile(
            r"<(?:script|img|link|iframe)[^>]*\s(?:src|href)=\"?(?:https?:)?//"
        ),
    }
    faults = [
        f"{path.relative_to(html)}: {fault}: {found[0]}"
        for path in sorted(html.rglob("*.html"))
        for fault, pattern in refused.items()
        for found in pattern.finditer(path.read_text())
    ]
    faults += [
        f"{path.relative_to(html)}: a file of another origin: {found[0]}"
        for path in sorted(html.rglob("*.css"))
        for found in re.finditer(
            r"(?:url\(|@import )[\"']?(?:https?:)?//\S*", path.read_text()
        )
    ]
    if faults:
        sys.exit("\n".join(faults))


def build_site(output: Path) -> None:
    """Lets Sphinx write the pages, and replaces the folder `output` by them."""
    here, html = Path(__file__).parent, BUILD / "html"
    shutil.rmtree(html, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    places = ["-d", str(BUILD / "doctrees"), "-c", str(here)]
    if build_main([*options, *places, str(BUILD / "source"), str(html)]):
        sys.exit("The site has errors: see above.")
    check_self_contained(html)
    shutil.rmtree(output, ignore_errors=True)
    shutil.copytree(html, output, ignore=shutil.ignore_patterns(*_NOT_FOR_READERS))


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
    matplotlib.use("Agg")
    pages = [] if options.without_programs else options.pages or list(PAGES)
    write_sources(pages, again=options.again)
    build_site(options.output)


if __name__ == "__main__":
    main()
