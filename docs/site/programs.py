"""Runs the programs of a page, and puts their output and pictures into it."""

import contextlib
import hashlib
import io
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib import pyplot

from docs.site.links import with_site_links
from tests.documents import (
    CLIENT_PAGE,
    PAGES,
    PICTURED_PAGES,
    ROOT,
    pictures,
    without_outputs,
    write_houses,
)
from tfbbb.cli.running_service import running_service

# What the output of a program depends on, beside its page.
_READ_BY_PROGRAMS = (
    *("tfbbb/**/*.py", "service/**/*.py", "tests/documents.py"),
    *("benchmarks/*.json", "requirements-test.lock"),
)
_FENCED = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
_OUTPUT_OF_SITE = "```{code-block} text\n:class: output\n\n"


def digest(page: str) -> str:
    """Returns a hash of a page and of all that its programs may read."""
    found = hashlib.sha256(without_outputs(PAGES[page].read_text()).encode())
    for pattern in _READ_BY_PROGRAMS:
        for path in sorted(ROOT.glob(pattern)):
            found.update(path.read_bytes())
    return found.hexdigest()


def run_page(page: str, runs: Path, *, again: bool) -> Path:
    """Runs a page in a directory of its own, unless it did since the last change."""
    folder = runs / digest(page)
    if folder.exists() and not again:
        return folder
    started = time.perf_counter(), time.process_time()
    staging = folder.with_suffix(".staging")
    for each in (folder, staging):
        shutil.rmtree(each, ignore_errors=True)
    staging.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        write_houses(Path())
        with started_service() if page == CLIENT_PAGE else contextlib.nullcontext():
            (staging / "page.md").write_text(with_output(page))
        drawn = {name for name in pictures(page) if Path(name).exists()}
        for name in (*drawn, *Path().glob("*=*.png")):
            shutil.copy(name, staging / name)
    if page in PICTURED_PAGES and (missing := {*pictures(page)} - drawn):
        raise FileNotFoundError(f"{page} does not draw its pictures: {missing}")
    pyplot.close("all")
    staging.rename(folder)
    now = time.perf_counter(), time.process_time()
    elapsed, computed = (end - start for end, start in zip(now, started, strict=True))
    print(f"{elapsed:6.1f} s, {computed:5.1f} s of processor time: {page}", flush=True)
    return folder


def with_output(page: str) -> str:
    """Runs the programs of a page; returns it with what each prints below it."""
    parts, namespace = [], {}
    for part in _FENCED.split(without_outputs(PAGES[page].read_text())):
        parts.append(part)
        if part.startswith("```python\n"):
            parts.append(shown_output(run_program(page, part, namespace)))
    return "".join(parts)


def for_site(page: str, text: str) -> str:
    """Returns a page with the links of the site, and outputs as Sphinx reads them."""
    return "".join(
        part.replace("```output\n", _OUTPUT_OF_SITE, 1)
        if part.startswith("```")
        else with_site_links(page, part)
        for part in _FENCED.split(text)
    )


def run_program(page: str, block: str, namespace: dict[str, Any]) -> str:
    """Runs one program in the namespace of its page; returns what it prints."""
    program = block.removeprefix("```python\n").removesuffix("```")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(program, page, "exec"), namespace)
    except BaseException:
        print(printed.getvalue())
        raise
    return printed.getvalue().rstrip()


def shown_output(printed: str) -> str:
    """Returns the Markdown of what a program has printed."""
    return f"\n\n```output\n{printed}\n```" if printed else ""


@contextlib.contextmanager
def started_service() -> Iterator[None]:
    """Runs the service that `tfbbb.client.Client()` finds in the environment."""
    with running_service(Path("saved_models")) as service:
        os.environ |= {"TFBBB_URL": service.url, "TFBBB_KEY": service.key}
        yield
        del os.environ["TFBBB_URL"], os.environ["TFBBB_KEY"]
