"""The Markdown pages of the project, as its tests read them."""

import json
import re
from pathlib import Path
from typing import Any

from tfbbb.tables import samples
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
_SIZE = re.compile(r"""\b((?:rounds|steps|draws)"?(?: = |=|: ))\d+""")
_EPOCHS = re.compile(r"""\b(epochs"?(?: = |=|: ))\d+""")
# A job of a page takes the fewest steps, of one network, and no time for what follows.
_JOB = (
    '"training": {"epochs": 1}',
    '"training": {"steps": 4, "kl_schedule": "constant", "max_seconds": 1}, '
    '"model": {"members": 1, "likelihood": "normal"}, "recalibration": "none"',
)
# An estimator that is given nothing takes a thousand steps of the default recipe.
_ESTIMATOR = (
    "Regressor()",
    "Regressor(steps=4, members=1, likelihood='normal', kl_schedule='constant')",
)
# A page that repeats its trainings for several numbers of rows repeats none.
_NUMBERS = re.compile(r"^(numbers = \(\d+), .*\)$", re.MULTILINE)
# Commands that need more than this machine, by page and heading.
ELSEWHERE = {
    "README.md": {"Try it": "installs the package"},
    "docs/operations.md": {
        "Several servers": "PostgreSQL and an object store",
        "Several servers with Docker Compose": "Docker",
        "Kubernetes": "a cluster",
        "Jobs on a Ray cluster": "a cluster",
        "Container": "Docker",
    },
}
_SESSION = """set -euo pipefail
curl() { command curl --fail-with-body "$@" && echo; }
serve() {
  tfbbb serve > serve.log 2>&1 < /dev/null & service=$!
  trap 'kill $service; wait $service' EXIT
  until command curl -sf "http://127.0.0.1:$TFBBB_PORT/health/ready" > ready.json; do
    kill -0 $service && sleep 0.2
  done
}
"""
# A network that learns the sample table in a second.
_FEW_STEPS = {
    "model": {"hidden_units": [16], "members": 2, "likelihood": "normal"},
    "training": {"effort": "quick", "steps": 200, "learning_rate": 0.02},
}
_FIELDS = json.dumps(_FEW_STEPS)
_SHORT_TRAININGS = (
    ("--target price", f"--target price --spec <(echo '{_FIELDS}')"),
    ('"target": "price"', f'"target": "price", {_FIELDS[1:-1]}'),
    ('"price", name=', f'"price", **{_FEW_STEPS}, name='),
    # A search takes as long as its trials do.
    ("--trials 20", "--trials 2"),
)
_HEADING_OR_BLOCK = re.compile(
    r"^#+ (?P<heading>[^\n]*)$|^```(?P<language>\w*)\n(?P<block>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

# What a program has printed when the page was recorded, below it.
_OUTPUT = re.compile(r"\n\n```output\n.*?^```$", re.DOTALL | re.MULTILINE)


def without_outputs(text: str) -> str:
    """Returns a page without the outputs that are recorded in it."""
    return _OUTPUT.sub("", text)


def blocks(page: str, language: str, heading: str = "") -> list[str]:
    """Returns the fenced blocks of a language, below a heading if one is given."""
    text = PAGES[page].read_text()
    if heading:
        _, found, text = text.partition(f"\n{heading}\n")
        assert found, f"{page} has no heading {heading!r}"
        text = re.split(r"^#{1,2} ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [block for name, block in _FENCED.findall(text) if name == language]


def short_form(program: str) -> str:
    """Returns a program that trains for as few steps as it can."""
    program = _EPOCHS.sub(r"\g<1>1", _SIZE.sub(r"\g<1>4", program))
    program = program.replace(*_ESTIMATOR).replace(*_JOB)
    return _NUMBERS.sub(r"\g<1>,)", program)


def run_programs(page: str, *, short: bool = False) -> dict[str, Any]:
    """Runs the programs of a page in its order, in one namespace; returns that."""
    namespace: dict[str, Any] = {}
    for program in blocks(page, "python"):
        if short:
            program = short_form(program)
        exec(compile(program, page, "exec", optimize=int(short)), namespace)
    return namespace


def pictures(page: str) -> list[str]:
    """Returns the names of the pictures beside a page that the page shows."""
    return re.findall(r"^!\[[^]]*\]\((\w+\.png)\)$", prose(page), re.MULTILINE)


def write_houses(directory: Path) -> None:
    """Writes the table that the commands of a page write before its programs run."""
    write_table(samples.houses(), directory / "houses.csv")


def shell_session(page: str, *, short: bool = False) -> str:
    """Returns one script of bash with the commands of a page, in their order.

    `tfbbb serve` runs in the background, on the port `TFBBB_PORT` in place of 8000, and
    the script goes on when the service is ready. A request that is refused ends the
    script, as any other failure does. Programs in Python are run if the page asks a
    service.
    """
    parts, heading = [_SESSION], ""
    languages = {"sh", "bash"} | ({"python"} if page == CLIENT_PAGE else set())
    for found in _HEADING_OR_BLOCK.finditer(PAGES[page].read_text()):
        heading = found["heading"] or heading
        if found["language"] not in languages or heading in ELSEWHERE.get(page, {}):
            continue
        block = found["block"]
        if found["language"] == "python":
            block = f"python - <<'PROGRAM'\n{block}PROGRAM\n"
        if short:
            for old, new in _SHORT_TRAININGS:
                block = block.replace(old, new)
        block = block.replace("127.0.0.1:8000", "127.0.0.1:$TFBBB_PORT")
        parts.append(re.sub("^tfbbb serve$", "serve", block, flags=re.MULTILINE))
    return "".join(parts)


def prose(page: str) -> str:
    """Returns a page without its fenced blocks."""
    return _FENCED.sub("", PAGES[page].read_text())
