"""Builds the documentation site: runs the programs of the pages, then Sphinx.

    python -m docs.site.build               builds service/guide
    python -m docs.site.build docs/keras.md runs the programs of one page only

Every page gets the output of its programs, and the pictures that they draw. What fails
the build: a program that fails, a broken link, a docstring that is not well-formed, and
a page that loads anything from elsewhere or has an inline script or style.
"""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib

from tests.documents import PAGES, ROOT, pictures

BUILD = ROOT / "build" / "docs"
SITE = ROOT / "service" / "guide"
CONTENTS = {
    "Use it": ("tables", "keras", "sklearn", "service", "operations", "saved_models"),
    "Choose and understand": ("inference", "evidence", "tfp_layers"),
    "Reference": ("api/index", "benchmarks/README", "benchmarks/RESULTS"),
    "Inside": ("architecture", "CONTRIBUTING", "CHANGELOG"),
}
# Its programs need a running service.
_CLIENT_PAGE = "docs/service.md"
# Their classes are documented with the methods of their bases.
_WITH_INHERITED = ("tfbbb", "tfbbb.sklearn")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")


def page_of_site(page: str) -> str:
    """Returns where the site has a page of the repository."""
    return "index.md" if page == "README.md" else page.removeprefix("docs/")


def modules() -> dict[str, ModuleType]:
    """Returns the public modules of the package by name."""
    import tfbbb

    packages = {f"tfbbb.{name}": getattr(tfbbb, name) for name in dir(tfbbb)}
    packages = {k: v for k, v in packages.items() if isinstance(v, ModuleType)}
    return {"tfbbb": tfbbb} | packages


def site_link(page: str, target: str) -> str | None:
    """Returns a link of a page as the site has it; None if its target is not there."""
    path, hash_, anchor = target.partition("#")
    if not path or ":" in path:
        return target
    found = Path(os.path.normpath(Path(page).parent / path))
    if str(found) in PAGES:
        to = page_of_site(str(found))
    elif found.parts[0] == "tfbbb":
        to = f"api/{'.'.join(found.parts[:2])}.md"
    elif found.suffix in (".png", ".svg"):
        to = page_of_site(str(found))
    else:
        return None
    start = Path(page_of_site(page)).parent
    return os.path.relpath(to, start) + hash_ + anchor


def with_site_links(page: str, text: str) -> str:
    """Returns prose with the links of the site."""

    def replace(match: re.Match[str]) -> str:
        link = site_link(page, match[2])
        return match[1] if link is None else f"[{match[1]}]({link})"

    return _LINK.sub(replace, text)


def run_page(page: str) -> str:
    """Runs the programs of a page, copies its pictures; returns its site's Markdown."""
    parts, namespace, end = [], {}, 0
    text = PAGES[page].read_text()
    for block in _FENCED.finditer(text):
        parts += [with_site_links(page, text[end : block.start()]), block[0]]
        end = block.end()
        if block[0].startswith("```python\n"):
            parts.append(shown_output(run_program(page, block[0], namespace)))
    return "".join([*parts, with_site_links(page, text[end:])])


def run_program(page: str, block: str, namespace: dict[str, Any]) -> str:
    """Runs one program in the namespace of its page; returns what it prints."""
    program = block.removeprefix("```python\n").removesuffix("```")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, page, "exec"), namespace)
    return printed.getvalue().rstrip()


def shown_output(printed: str) -> str:
    """Returns the Markdown of what a program has printed."""
    if not printed:
        return ""
    return f"\n\n```{{code-block}} text\n:class: output\n\n{printed}\n```"


def write_sources(pages_to_run: list[str]) -> None:
    """Writes everything that Sphinx reads to the folder `build/docs/source`."""
    source = BUILD / "source"
    shutil.rmtree(source, ignore_errors=True)
    for picture in [
        path
        for pattern in ("docs/*.svg", "docs/**/*.png", "benchmarks/*.png")
        for path in ROOT.glob(pattern)
    ]:
        to = source / page_of_site(str(picture.relative_to(ROOT)))
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, to)
    for page, path in PAGES.items():
        to = source / page_of_site(page)
        to.parent.mkdir(parents=True, exist_ok=True)
        if page in pages_to_run:
            to.write_text(run_in_directory(page, to.parent))
        else:
            to.write_text(with_site_links(page, path.read_text()))
    write_reference(source / "api")
    with (source / "index.md").open("a") as index:
        for caption, entries in CONTENTS.items():
            lines = "\n".join(entries)
            index.write(
                f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n{lines}\n```\n"
            )


def run_in_directory(page: str, folder: Path) -> str:
    """Runs a page in a directory of its own; copies what it draws into a folder."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        text = run_page(page)
        for name in pictures(page):
            if Path(name).exists():
                shutil.copy(name, folder / name)
    print(f"{time.perf_counter() - started:6.1f} s  {page}", flush=True)
    return text


def reference(name: str, module: ModuleType) -> str:
    """Returns the reference page of a module; names of `tfbbb` have theirs there."""
    import tfbbb

    lines = [f".. automodule:: {name}"]
    if name in _WITH_INHERITED:
        lines.append("   :inherited-members:")
    elsewhere = sorted({*getattr(module, "__all__", ())} & {*tfbbb.__all__})
    note = ""
    if module is not tfbbb and elsewhere:
        lines.append(f"   :exclude-members: {', '.join(elsewhere)}")
        names = ", ".join(f"`{each}`" for each in elsewhere)
        note = f"{names}: see [`tfbbb`](tfbbb.md).\n\n"
    directive = "\n".join(lines)
    return f"# {name}\n\n{note}```{{eval-rst}}\n{directive}\n```\n"


def write_reference(folder: Path) -> None:
    """Writes a page for every public module, and their list."""
    folder.mkdir()
    found = modules()
    for name, module in found.items():
        (folder / f"{name}.md").write_text(reference(name, module))
    lines = "\n".join(found)
    (folder / "index.md").write_text(
        "# API reference\n\nThe public modules of the package, from their docstrings. "
        "A name that this reference lacks may change without notice."
        f"\n\n```{{toctree}}\n:maxdepth: 1\n\n{lines}\n```\n"
    )


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


def build_site() -> None:
    """Lets Sphinx write the pages, and puts the site in the place of the one before."""
    from sphinx.cmd.build import build_main

    here, html = Path(__file__).parent, BUILD / "html"
    shutil.rmtree(html, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    places = ["-d", str(BUILD / "doctrees"), "-c", str(here)]
    if build_main([*options, *places, str(BUILD / "source"), str(html)]):
        sys.exit("The site has errors: see above.")
    check_self_contained(html)
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(
        html, SITE, ignore=shutil.ignore_patterns(".buildinfo", "objects.inv")
    )


if __name__ == "__main__":
    matplotlib.use("Agg")
    write_sources(sys.argv[1:] or [p for p in PAGES if p != _CLIENT_PAGE])
    build_site()
