"""What the benchmarks of predictions share: options, the run, its report."""

import argparse
import os
import signal
import sys
import tempfile
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
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
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
    measure: Callable[[RecordFile, argparse.Namespace], object],
    report: Callable[[RecordFile], str],
) -> None:
    """Measures what the file lacks, where the options say; prints the report."""
    output = options.output or _default_output(Path(program), smoke=options.smoke)
    measured = RecordFile(output, smoke=options.smoke, again=options.again)
    if measured.records and not options.again:
        print(f"records in {output}: {len(measured.records)}; measures what is missing")
    stopped, processes = None, getattr(options, "processes", None)
    if processes == 1:
        compute_with_one_thread()
    try:
        with places(processes):
            measure(measured, options)
    except DataError as error:
        # Old results would look like those that were asked for.
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        stopped = f"Interrupted; the same command goes on. Records: {output}"
    if options.smoke:
        print("\nA smoke run: its figures are of no use as results.")
    skipped = [f"Skipped: {_named(entry)}" for entry in measured.skipped]
    told = [report(measured)] if measured.records else []
    print("", *told, *skipped, sep="\n", flush=True)
    if stopped is not None:
        print(stopped, file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    print(f"\nrecords: {output}")


def _named(entry: Mapping[str, Any]) -> str:
    """Returns the key of what was skipped, and the reason."""
    key = ", ".join(str(value) for name, value in entry.items() if name != "reason")
    return f"{key}: {entry['reason']}"


def _default_output(program: Path, *, smoke: bool) -> Path:
    name = f"{program.stem}.json"
    if smoke:
        return Path(tempfile.mkdtemp(prefix="tfbbb-benchmark-")) / name
    return FOLDER / name


@contextmanager
def failures_skipped() -> Iterator[None]:
    """Turns what `train_table` refuses, or cannot train, into `SkippedError`."""
    from tfbbb.tables import TableError
    from tfbbb.training import SpecError, TrainingDivergedError

    try:
        yield
    except (TableError, SpecError, TrainingDivergedError) as error:
        raise SkippedError(f"it failed: {error}") from error
