"""Makes `RESULTS.md` from the records beside it.

    python benchmarks/make_results.py [--pictures]

Every program of `tfbbb benchmark` with records has a section: its report, its picture
and its command. The comparisons of all programs with records, those of speed too, make
the summary of what we lose, whose causes `causes.toml` names.
"""

import argparse
import importlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from types import ModuleType

from comparisons import Comparison, summarize_losses
from program import FOLDER, save_picture
from records import RecordFile
from speeds import COMPARE

from tfbbb.cli.benchmark import find_programs

_HEAD = """# Results

`python benchmarks/make_results.py` makes this page from the JSON files beside it, the
records of `tfbbb benchmark NAME --data DIR`. Means have standard errors. Each record
has its seed, its settings and its time, and each run its machine and versions.
"""
_LOST = "## What we lose on, and why\n"


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


def compare_all() -> dict[str, list[Comparison]]:
    """Returns the comparisons of every program with records, by its name."""
    found = {}
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem in COMPARE:
            results = json.loads(path.read_text("utf-8"))
            found[path.stem] = list(COMPARE[path.stem](results))
        else:
            compare = importlib.import_module(path.stem).compare
            found[path.stem] = compare(RecordFile(path))
    return found


def results_page() -> str:
    """Returns the page as Markdown."""
    sections = [_HEAD]
    for name, records in recorded_programs().items():
        sections.append(_section(importlib.import_module(name), records))
    compared = compare_all()
    sections += [_LOST, summarize_losses(compared), _causes(compared)]
    return "\n".join(sections).rstrip() + "\n"


def _causes(compared: Mapping[str, Sequence[Comparison]]) -> str:
    """Returns the causes of what is worse, as far as they are known."""
    causes = read_causes()
    lines = []
    for program, found in compared.items():
        for name in dict.fromkeys(each.name for each in found if each.is_worse):
            if name in causes.get(program, {}):
                lines.append(f"- **{program}, {name}**: {causes[program][name]}")
    return "\n".join(["\nKnown causes:\n", *lines]) if lines else ""


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


def read_causes() -> dict[str, dict[str, str]]:
    """Returns the causes by benchmark and name of the comparison."""
    return tomllib.loads((FOLDER / "causes.toml").read_text("utf-8"))


if __name__ == "__main__":
    main()
