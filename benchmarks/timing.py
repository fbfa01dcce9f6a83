"""Measures alternatives in turns, so that the drift of a shared machine cancels."""

import functools
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from device import device_of_processes
from rich.console import Console
from rich.progress import track

_LIBRARIES = ("tensorflow", "keras", "tensorflow-probability", "tf-keras", "numpy")


def interleaved(
    contenders: Mapping[str, Callable[[], float]], rounds: int, what: str
) -> dict[str, list[float]]:
    """Measures every contender once per round, in an order drawn for each round."""
    order = random.Random(0)
    measured: dict[str, list[float]] = {name: [] for name in contenders}
    console = Console(file=sys.stderr)
    for _ in track(range(rounds), what, console=console, transient=True):
        for name in order.sample(list(contenders), len(contenders)):
            measured[name].append(contenders[name]())
    return measured


def interleaved_steps(
    models: Mapping[str, Any], x: Any, y: Any, batch_size: int, rounds: int
) -> dict[str, list[float]]:
    """Measures a step of each compiled Keras model, after an epoch to warm up."""

    def milliseconds(model: Any) -> float:
        begin = time.perf_counter()
        model.fit(x, y, batch_size=batch_size, verbose=0)
        return 1e3 * (time.perf_counter() - begin) * batch_size / len(x)

    for model in models.values():
        milliseconds(model)
    timers = {
        name: functools.partial(milliseconds, model) for name, model in models.items()
    }
    return interleaved(timers, rounds, "steps")


def ratio(measured: Mapping[str, list[float]], name: str, other: str) -> float:
    """Returns the median, over the rounds, of one contender's time over another's."""
    pairs = zip(measured[name], measured[other], strict=True)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def spread(values: list[float]) -> dict[str, float]:
    """Returns the median and the quartiles."""
    lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "lower_quartile": lower, "upper_quartile": upper}


def machine() -> dict[str, Any]:
    """Describes the machine: processor cores, load, device and libraries."""
    return {**cores_and_versions(_LIBRARIES), "device": device_of_processes()}


def cores_and_versions(libraries: Iterable[str]) -> dict[str, Any]:
    """Describes the machine without its device, and the versions of libraries."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "load_average_at_start": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in libraries},
    }


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown; all columns but the first are right-aligned."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = cells
        numbers = [x.rjust(width) for x, width in zip(others, widths[1:], strict=True)]
        return f"| {' | '.join([first.ljust(widths[0]), *numbers])} |"

    rule = "|".join(["-" * (widths[0] + 2), *["-" * (w + 1) + ":" for w in widths[1:]]])
    head, *body = map(line, lines)
    return "\n".join([head, f"|{rule}|", *body])


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Prints a table in Markdown."""
    print(f"\n{title}", "", markdown_table(columns, rows), sep="\n", flush=True)


def write_json(program: str, results: Mapping[str, Any]) -> None:
    """Writes the results beside the program, under its name."""
    path = Path(program).with_suffix(".json")
    path.write_text(json.dumps(rounded(results), indent=2) + "\n")


def rounded(value: Any, digits: int = 4) -> Any:
    """Rounds every float in a value to significant digits."""
    if isinstance(value, Mapping):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
