"""Seconds of the stages of a job, and whether the time left that it tells comes true.

    python benchmarks/job_stages.py

Each table is trained by the default recipe as a job of the service is, in a process
that has just started (cold), and then in one that has trained before (warm). From the
third second on, the job is asked four times a second how long it takes yet.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from timing import cores_and_versions, print_table, write_json

FOLDER = Path(__file__).resolve().parent
DATA = FOLDER.parents[1] / "shared" / "data"
REGRESSIONS = ("bostonHousing", "concrete", "energy", "wine-quality-red", "yacht")
CLASSES = ("australian", "german_numeric", "ionosphere", "pima")
GENERATED = "generated"
TABLES = (*REGRESSIONS, *CLASSES, GENERATED)
FROM_SECOND, EVERY, WITHIN = 3.0, 0.25, 0.25


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("TFBBB_DATA", DATA))
    parser.add_argument("--tables", default=",".join(TABLES), metavar="A,B")
    parser.add_argument("--effort", default="default", help="as of `tfbbb train`")
    parser.add_argument(
        "--max-seconds", type=float, help="as of `tfbbb train`, of the warm process"
    )
    options = parser.parse_args()
    names = options.tables.split(",")
    results = {
        **cores_and_versions(("tensorflow", "keras", "numpy")),
        "effort": options.effort,
        "jobs": {},
    }
    # TensorFlow ends with its process, so that the next one is cold.
    context = multiprocessing.get_context("spawn")
    for process, tables in (("cold", names[:1]), ("warm", names)):
        receiver, sender = context.Pipe(duplex=False)
        arguments = (process, tables, options.data, options, sender)
        child = context.Process(target=run_jobs, args=arguments)
        child.start()
        sender.close()
        for name in tables:
            results["jobs"].setdefault(process, {})[name] = job = receiver.recv()
            print(f"{process}: {name}: {job['total']:.1f} s", file=sys.stderr)
            # A run that is stopped keeps its measurements.
            write_json(__file__, results)
        child.join()
    report(results["jobs"])


def run_jobs(
    process: str, tables: list[str], data: Path, options: Any, out: Any
) -> None:
    """Trains tables one after the other, and sends what each job took."""
    from service.job_process.table_trainer import TableTrainer
    from service.shared.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        if process == "warm":
            settings = Settings(data_dir=Path(folder), models=Path(folder))
            TableTrainer(settings).prepare(lambda: False)
        for number, name in enumerate(tables):
            out.send(run_job(name, data, options, Path(folder) / f"{number}"))


def run_job(name: str, data: Path, options: Any, directory: Path) -> dict[str, Any]:
    """Trains and exports one table; returns seconds by part, and what was told."""
    from tfbbb.training.job_clock import JobClock

    columns = read(name, data)
    worked = time.process_time()
    clock, over, told = JobClock(), threading.Event(), []
    clock.skip("version")

    def ask() -> None:
        while not over.wait(EVERY):
            left = clock.left()
            told.append([left.elapsed, left.least, left.most, left.done])

    asking = threading.Thread(target=ask)
    asking.start()
    clock.begin("loading")
    from tfbbb.base.tensorflow_startup import import_tensorflow

    import_tensorflow()
    from tfbbb.training import train_table

    spec = {
        "target": "target",
        "training": {"effort": options.effort, "max_seconds": options.max_seconds},
    }
    trained = train_table(columns, spec, clock=clock)
    trained.export_to(directory)
    clock.end()
    over.set()
    asking.join()
    total = clock.elapsed
    return {
        "rows": len(columns["target"]),
        "columns": len(columns) - 1,
        "total": total,
        "processor_seconds": time.process_time() - worked,
        "parts": clock.seconds,
        **kept(told, total),
    }


def kept(told: list[list[float]], total: float) -> dict[str, float]:
    """Returns how often the range came true, within a quarter, and how wide it was."""
    later = [each for each in told if each[0] >= FROM_SECOND]
    true = [
        (1.0 - WITHIN) * least - 1.0 <= total - elapsed <= (1.0 + WITHIN) * most + 1.0
        for elapsed, least, most, _ in later
    ]
    shares = [each[3] for each in told]
    return {
        "came_true": float(np.mean(true)),
        "most_over_least": float(
            np.median([most / max(least, 1.0) for _, least, most, _ in later])
        ),
        "never_falls": bool(np.all(np.diff(shares) >= 0.0)),
    }


def read(name: str, data: Path) -> dict[str, np.ndarray]:
    """Returns the columns of a table, with `target`."""
    if name == GENERATED:
        generator = np.random.default_rng(0)
        x = generator.normal(size=(6_000, 10))
        y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + generator.normal(size=len(x))
    elif name in REGRESSIONS:
        file = np.load(data / "uci" / f"{name}.npz")
        x, y = file["data"][:, file["index_features"]], file["data"]
        y = y[:, file["index_target"]].ravel()
    else:
        file = np.load(data / f"{name}.npz")
        x, y = file["x"], np.char.add("class ", file["y"].astype(int).astype(str))
    return {**{f"x{n}": x[:, n] for n in range(x.shape[1])}, "target": y}


def report(jobs: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the parts of the first table's jobs, and the time left of all jobs."""
    from tfbbb.training.job_clock import PARTS

    first = next(iter(jobs["warm"]))
    found = [jobs[process][first] for process in ("cold", "warm")]
    rows = [
        [
            PARTS[part].stage,
            part,
            *(f"{job['parts'].get(part, 0.0):.1f}" for job in found),
        ]
        for part in PARTS
    ]
    rows.append(["", "total", *(f"{job['total']:.1f}" for job in found)])
    before = ("loading", "reading", "likelihood", "network", "first step")
    for what, parts in (
        ("until the first step", before),
        ("after the last step", [name for name, part in PARTS.items() if part.after]),
    ):
        sums = (sum(job["parts"].get(x, 0.0) for x in parts) for job in found)
        rows.append(["", what, *(f"{each:.1f}" for each in sums)])
    heads = ["stage", "part", "cold, s", "warm, s"]
    print_table(f"Stages of a job: {first}", heads, rows)
    rows = [
        [
            name,
            process,
            f"{job['total']:.0f}",
            f"{job['came_true']:.0%}",
            f"{job['most_over_least']:.1f}",
            "yes" if job["never_falls"] else "no",
        ]
        for process, of_process in jobs.items()
        for name, job in of_process.items()
    ]
    heads = ["table", "trainer", "total, s", "came true", "most / least", "bar rises"]
    print_table("The time left, from the third second on", heads, rows)


if __name__ == "__main__":
    main()
