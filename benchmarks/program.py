"""What all programs of `tfbbb benchmark` share: options, tables, picture, report."""

import argparse
import functools
import math
import os
import signal
import statistics
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parallel import compute_with_one_thread, places
from records import RecordFile, SkippedError

FOLDER = Path(__file__).resolve().parent
_DATA = FOLDER.parents[1] / "shared" / "data"


class DataError(Exception):
    """The data directory lacks what a benchmark needs; the message is one sentence."""


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options of all benchmarks."""
    parser = argparse.ArgumentParser(
        description=(description or "").partition("\n")[0],
        prog=f"tfbbb benchmark {Path(sys.argv[0]).stem}",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("TFBBB_DATA", _DATA)),
        metavar="DIR",
        help="directory of the data (default: $TFBBB_DATA, else ../shared/data)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="JSON file of the records; a file that exists is continued (default: "
        "beside the program)",
    )
    parser.add_argument(
        "--again", action="store_true", help="measure again what the file has"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="a run of seconds, of no use as a result"
    )
    return parser


def add_table_options(
    parser: argparse.ArgumentParser,
    methods: Sequence[str],
    *,
    sets: Sequence[str] | None = None,
    splits: int | None = None,
) -> None:
    """Adds the options of benchmarks that score methods on splits of tables."""
    add_names_option(parser, "methods", methods)
    known = "sets by file name" if sets is None else f"some of {', '.join(sets)}"
    parser.add_argument(
        "--sets",
        type=(lambda text: text.split(",")) if sets is None else names_among(sets),
        metavar="A,B",
        help=f"{known} (default: all in the directory)",
    )
    parser.add_argument(
        "--splits",
        type=positive_integer,
        default=splits,
        metavar="N",
        help=f"the first N splits (default: {splits or 'all'})",
    )


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """Adds the option that says where measurements run."""
    parser.add_argument(
        "--processes",
        type=positive_integer,
        metavar="N",
        help="measure N splits at a time, in processes with one thread (default: "
        "one after the other in this process, with all threads)",
    )


def run_tasks(
    program: str,
    options: argparse.Namespace,
    measure: Callable[[RecordFile, argparse.Namespace], object],
    report: Callable[[RecordFile], str],
) -> None:
    """Runs a benchmark, as `run` does, which measures where its options say."""
    if options.processes == 1:
        compute_with_one_thread()
    with places(options.processes):
        run(program, options, lambda measured: measure(measured, options), report)


def add_names_option(
    parser: argparse.ArgumentParser, what: str, known: Iterable[str]
) -> None:
    """Adds `--WHAT A,B`, some of the known names; the default is all of them."""
    names = list(known)
    parser.add_argument(
        f"--{what}",
        type=names_among(names),
        default=names,
        metavar="A,B",
        help=f"{what} (default: all of {', '.join(names)})",
    )


def names_among(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    """Returns the type of an option with names, separated by commas."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(
                    f"name some of {', '.join(allowed)}. Received: {name!r}"
                )
        return names

    return parse


def positive_integer(text: str) -> int:
    """Parses a positive integer, as the type of an option."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be at least 1. Received: {text!r}")
    return int(text)


def run(
    program: str,
    options: argparse.Namespace,
    measure: Callable[[RecordFile], None],
    report: Callable[[RecordFile], str],
    draw: Callable[[RecordFile], Any] | None = None,
) -> None:
    """Measures what the file lacks, prints the report and saves the picture."""
    output = options.output or _default_output(Path(program), smoke=options.smoke)
    measured = RecordFile(output, smoke=options.smoke, again=options.again)
    if measured.records and not options.again:
        print(f"records in {output}: {len(measured.records)}; measures what is missing")
    stopped = None
    try:
        measure(measured)
    except DataError as error:
        # Old results would look like those that were asked for.
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        stopped = f"Interrupted; the same command goes on. Records: {output}"
    lines = [report(measured)] if measured.records else skipped_lines(measured)
    if options.smoke:
        lines.insert(0, "A smoke run: its figures are of no use as results.\n")
    print("", *lines, sep="\n", flush=True)
    if stopped is not None:
        print(stopped, file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    print(f"\nrecords: {output}")
    if draw is not None and measured.records:
        print(f"picture: {save_picture(draw(measured), output)}")


def _default_output(program: Path, *, smoke: bool) -> Path:
    name = f"{program.stem}.json"
    if smoke:
        return Path(tempfile.mkdtemp(prefix="tfbbb-benchmark-")) / name
    return FOLDER / name


def panels(lines: int, columns: int, size: tuple[float, float], **more: Any) -> Any:
    """Returns a figure and its axes [lines, columns] in the style of `tfbbb.plots`."""
    from matplotlib.figure import Figure

    from tfbbb.scores.plots.style import drawn_axes

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, **more)
    for each in axes.flat:
        drawn_axes(each)
    return figure, axes


def save_picture(figure: Any, output: Path) -> Path:
    """Saves a figure beside a JSON file; returns its path."""
    path = output.with_suffix(".png")
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return path


def mean_and_error(values: Iterable[float | None]) -> tuple[float, float]:
    """Returns the mean and its standard error; NaN where it is not known.

    The standard error is that of independent values, s / sqrt(n).
    """
    numbers = [math.nan if value is None else value for value in values]
    if not numbers:
        return math.nan, math.nan
    mean = statistics.fmean(numbers)
    if len(numbers) < 2 or not math.isfinite(mean):
        return mean, math.nan
    return mean, statistics.stdev(numbers) / math.sqrt(len(numbers))


def values_by_split(
    records: Iterable[Mapping[str, Any]], score: str, **fields: Any
) -> dict[int, float | None]:
    """Returns a score by split, of the records that have it and these values."""
    return {
        record["split"]: record[score]
        for record in records
        if score in record and all(record[k] == v for k, v in fields.items())
    }


def common_means(*of_methods: Mapping[int, float | None]) -> tuple[float, ...] | None:
    """Returns the means over the splits that all methods have; None without any."""
    splits = sorted(set.intersection(*(set(values) for values in of_methods)))
    if not splits:
        return None
    return tuple(mean_and_error(v[i] for i in splits)[0] for v in of_methods)


@contextmanager
def failures_skipped() -> Iterator[None]:
    """Turns what `train_table` refuses, or cannot train, into `SkippedError`."""
    from tfbbb.tables import TableError
    from tfbbb.training import SpecError, TrainingDivergedError

    try:
        yield
    except (TableError, SpecError, TrainingDivergedError) as error:
        raise SkippedError(f"it failed: {error}") from error


def with_error(
    values: Iterable[float | None], digits: int = 2, factor: float = 1.0
) -> str:
    """Returns `mean ± standard error` as text; empty without values."""
    numbers = list(values)
    mean, error = mean_and_error(numbers)
    if not numbers:
        return ""
    if not math.isfinite(mean):
        return "not finite"
    text = f"{factor * mean:.{digits}f}"
    return f"{text} ± {factor * error:.{digits}f}" if math.isfinite(error) else text


def decimals(values: Iterable[float | None]) -> int:
    """Returns how many decimals show two digits, or three of a mean below 0.1."""
    size = abs(mean_and_error(values)[0])
    if not 0.0 < size < 0.1:
        return 2
    return 2 - math.floor(math.log10(size))


def splits_line(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns a sentence with the number of splits of each method."""
    counts: dict[str, dict[str, int]] = {}
    for record in records:
        sets = counts.setdefault(record["method"], {})
        sets[record["set"]] = sets.get(record["set"], 0) + 1
    listed = [
        f"{method} {'–'.join(map(str, sorted({min(n.values()), max(n.values())})))}"
        for method, n in counts.items()
    ]
    return f"Splits of each set: {', '.join(listed)}."


def skipped_lines(measured: RecordFile) -> list[str]:
    """Returns a line for each method that was skipped, with the reason."""
    return [
        f"Skipped: {', '.join(str(v) for k, v in entry.items() if k != 'reason')}: "
        f"{entry['reason']}"
        for entry in measured.skipped
    ]


def published(name: str) -> dict[str, Any]:
    """Returns the published figures of a benchmark, a table of `published.toml`."""
    return _published()[name]


@functools.cache
def _published() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "published.toml").read_text("utf-8"))


def published_score(method: str, score: str, name: str) -> float | None:
    """Returns a published score of a set, None where the paper has none."""
    for known, value in published("uci")["methods"][method].get(score, {}).items():
        if name.lower().startswith(known.lower()):
            return value
    return None
