"""Makes `RESULTS.md` from the records beside it.

    python benchmarks/make_results.py

Every benchmark of predictions with records has a section, its report.
"""

import importlib
from types import ModuleType

from program import FOLDER
from records import RecordFile

_HEAD = """# Results

`python benchmarks/make_results.py` makes this page from the JSON files beside it, the
records of `python benchmarks/NAME.py`. Means have standard errors. Each record
has its seed, its settings, its time and more figures than are shown here; each run has
its machine and versions. Times depend on the load of the machine.
"""


def main() -> None:
    """Writes the page."""
    path = FOLDER / "RESULTS.md"
    path.write_text(results_page(), encoding="utf-8")
    print(path)


def recorded_programs() -> dict[str, RecordFile]:
    """Returns the records of the benchmarks whose `main` takes arguments."""
    paths = sorted(FOLDER.glob("*.py"))
    names = [p.stem for p in paths if "\ndef main(arguments" in p.read_text("utf-8")]
    files = {name: RecordFile(FOLDER / f"{name}.json") for name in names}
    return {name: file for name, file in files.items() if file.records}


def results_page() -> str:
    """Returns the page as Markdown."""
    sections = [
        _section(importlib.import_module(name), records)
        for name, records in recorded_programs().items()
    ]
    return "\n".join([_HEAD, *sections])


def _section(module: ModuleType, records: RecordFile) -> str:
    what = (module.__doc__ or "").partition("\n")[0]
    run = records.runs[-1]
    when = (
        f"Last run on {run['started'][:10]} with {run['cores']} cores, TensorFlow "
        f"{run['tensorflow']} and Keras {run['keras']}."
    )
    parts = [f"## {records.path.stem}", what, when, module.report(records)]
    return "\n\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    main()
