"""Makes `RESULTS.md` from the records beside it.

    python benchmarks/make_results.py [--pictures]

Every program of `tfbbb benchmark` with records has a section: its report, its picture
and its command. `causes.toml` names the causes of what is lost.
"""

import argparse
import importlib
import tomllib
from types import ModuleType

from program import FOLDER, Comparison, save_picture
from records import RecordFile

from tfbbb.cli.benchmark import find_programs

_HEAD = """# Results

`python benchmarks/make_results.py` makes this page from the JSON files beside it, the
records of `tfbbb benchmark NAME --data DIR`. Means have standard errors. Each record
has its seed, its settings and its time, and each run its machine and versions.
"""
_LOST = """## What we lose on, and why

Every comparison of the benchmarks above in which our figure is the worse one.
"""


def main() -> None:
    """Writes the page and, if asked for, the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pictures", action="store_true", help="draw them, too")
    if parser.parse_args().pictures:
        for name, records in recorded_programs().items():
            draw = getattr(importlib.import_module(name), "draw", None)
            if draw is not None:
                save_picture(draw(records), records.path)
    path = FOLDER / "RESULTS.md"
    path.write_text(results_page(), encoding="utf-8")
    print(path)


def recorded_programs() -> dict[str, RecordFile]:
    """Returns the records of the benchmarks that have any."""
    files = {name: RecordFile(FOLDER / f"{name}.json") for name in find_programs()}
    return {name: file for name, file in files.items() if file.records}


def results_page() -> str:
    """Returns the page as Markdown."""
    sections = [_HEAD]
    compared: list[tuple[str, Comparison]] = []
    for name, records in recorded_programs().items():
        module = importlib.import_module(name)
        sections.append(_section(module, records))
        compare = getattr(module, "compare", lambda records: [])
        compared += [(name, found) for found in compare(records)]
    sections += [_LOST, _losses(compared)]
    return "\n".join(sections).rstrip() + "\n"


def _losses(compared: list[tuple[str, Comparison]]) -> str:
    if not compared:
        return "No figure of ours is recorded yet."
    lost = [_lost_line(name, found) for name, found in compared if found.lost]
    return "\n".join(lost) if lost else "Nothing."


def _section(module: ModuleType, records: RecordFile) -> str:
    name = records.path.stem
    what = (module.__doc__ or "").partition("\n")[0]
    picture = records.path.with_suffix(".png")
    parts = [
        f"## {name}",
        what,
        f"`tfbbb benchmark {name} --data DIR`{_when(records)}",
        module.report(records),
        f"![{name}]({picture.name})" if picture.exists() else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _when(records: RecordFile) -> str:
    run = records.runs[-1]
    return (
        f", last run on {run['started'][:10]} with {run['cores']} cores, "
        f"TensorFlow {run['tensorflow']} and Keras {run['keras']}. Times depend on the "
        f"load of the machine, which was {run['load_average_at_start']:g} at the start."
    )


def _lost_line(program: str, found: Comparison) -> str:
    cause = read_causes().get(program, {}).get(found.name, "No cause is known.")
    return (
        f"- **{program}, {found.name}**: {found.ours:.4g}, {found.rival} "
        f"{found.theirs:.4g}. {cause}"
    )


def read_causes() -> dict[str, dict[str, str]]:
    """Returns the causes by benchmark and name of the comparison."""
    return tomllib.loads((FOLDER / "causes.toml").read_text("utf-8"))


if __name__ == "__main__":
    main()
