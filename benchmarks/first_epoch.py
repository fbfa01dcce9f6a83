"""Seconds from the submission of a small job to its first epoch and served model.

    python benchmarks/first_epoch.py

The first job of a service imports TensorFlow; later jobs use the same trainer. Each
round starts a new service.
"""

import argparse
import tempfile
import time
from pathlib import Path

from timing import machine, print_table, spread, write_json

from tfbbb.cli.running_service import running_service
from tfbbb.client import Client
from tfbbb.tables import samples

JOBS = ("first job", "second job", "third job")
MOMENTS = ("first epoch", "succeeded", "answers")


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measured: dict[str, dict[str, list[float]]] = {
        job: {moment: [] for moment in MOMENTS} for job in JOBS
    }
    for _ in range(options.rounds):
        with (
            tempfile.TemporaryDirectory() as models,
            running_service(Path(models)) as (url, key),
            Client(url, key) as client,
        ):
            for job in JOBS:
                for moment, seconds in one_job(client).items():
                    measured[job][moment].append(seconds)
    results = {
        job: {moment: spread(seconds) for moment, seconds in moments.items()}
        for job, moments in measured.items()
    }
    rows = [
        [job, *(f"{moments[moment]['median']:.2f}" for moment in MOMENTS)]
        for job, moments in results.items()
    ]
    print_table("seconds after submission, median", ["", *MOMENTS], rows)
    write_json(__file__, {"machine": machine(), **results})


def one_job(client: Client) -> dict[str, float]:
    """Trains on the diabetes table; returns the seconds until each event."""
    table = samples.diabetes()
    dataset = client.upload(table, name="diabetes")
    begin = time.perf_counter()
    job = client.train(
        dataset, "progression", name="diabetes", training={"epochs": 100}
    )
    moments: dict[str, float] = {}
    for event in job.events():
        if event.type == "epoch":
            moments.setdefault("first epoch", time.perf_counter() - begin)
    moments["succeeded"] = time.perf_counter() - begin
    job.refresh()
    rows = table.slice(0, 1).drop_columns("progression").to_pylist()
    # The service checks for new versions once a second.
    client.model("diabetes").predict(rows, version=job.version)
    moments["answers"] = time.perf_counter() - begin
    return moments


if __name__ == "__main__":
    main()
