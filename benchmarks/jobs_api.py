"""Milliseconds to list and to get jobs, with 10 000 ended jobs.

    python benchmarks/jobs_api.py

One client on one connection calls a service in another process, on SQLite.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from timing import interleaved, machine, print_table, write_json

from service.api.jobs.schemas import JobRequest
from service.shared.database import Database, upgrade
from service.shared.database.tables import Event, Job
from service.shared.files import JobFiles
from service.shared.settings import Settings

ROOT = Path(__file__).parent.parent
PORT = 8392
JOBS, EPOCHS, MODELS = 10_000, 20, 50
KEY = "benchmark.0123456789abcdef0123456789abcdef"
STATES = ("succeeded", "succeeded", "succeeded", "failed", "cancelled")


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=300, help="requests of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(data_dir=Path(directory), models=Path(directory) / "models")
        settings.models.mkdir()
        ids = fill(settings)
        with service(settings) as client:
            contenders = {
                name: timer(client, url) for name, url in requests(client, ids).items()
            }
            measured = interleaved(contenders, options.rounds, "requests")
    figures = {name: percentiles(values) for name, values in measured.items()}
    rows = [
        [name, f"{times['p50']:.1f}", f"{times['p95']:.1f}"]
        for name, times in figures.items()
    ]
    print_table(f"{JOBS} jobs that have ended", ["", "p50, ms", "p95, ms"], rows)
    write_json(__file__, {"machine": machine(), "jobs": JOBS, "milliseconds": figures})


def fill(settings: Settings) -> list[str]:
    """Adds ended jobs, each with its events and its log."""
    database = Database(settings.effective_database_url)
    upgrade(database, settings.data_dir)
    request = JobRequest(dataset_id="0" * 24, name="model", target="price")
    spec = json.loads(json.dumps(request.spec()))
    chance = random.Random(0)
    ids = []
    with database.writing() as session:
        for number in range(JOBS):
            job = make_job(number, spec, chance)
            session.add(job)
            session.flush()
            session.add_all(make_events(job))
            ids.append(job.id)
    for job_id in ids[::100]:
        files = JobFiles(settings, job_id)
        files.directory.mkdir(parents=True)
        files.log.write_text("an epoch has ended\n" * 2000)
    database.close()
    return ids


def make_job(number: int, spec: dict[str, Any], chance: random.Random) -> Job:
    """Returns a job that has ended."""
    steps = 6000
    return Job(
        name=f"model_{chance.randrange(MODELS)}",
        dataset_sha256="0" * 64,
        dataset_format="csv",
        spec=spec,
        state=chance.choice(STATES),
        attempt=1,
        created_at=1e9 + number,
        started_at=1e9 + number + 1,
        finished_at=1e9 + number + 20,
        progress={
            **{"epoch": EPOCHS, "epochs": EPOCHS, "step": steps, "steps": steps},
            "figures": {"loss": 1.2, "nll": 1.1, "kl": 31.4, "val_nll": 1.15},
        },
        version=number + 1,
    )


def make_events(job: Job) -> Iterator[Event]:
    """Yields the events of a job from its start to its end."""
    told: list[tuple[str, dict[str, Any]]] = [("state", {"state": "queued"})]
    told += [("epoch", {"epoch": epoch, "nll": 1.1}) for epoch in range(EPOCHS)]
    told.append(("state", {"state": job.state}))
    for sequence, (type_, data) in enumerate(told, start=1):
        yield Event(
            job_id=job.id, sequence=sequence, type=type_, data=data, created_at=1e9
        )


@contextmanager
def service(settings: Settings) -> Iterator[httpx.Client]:
    """Runs the service in another process until the block ends."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "--factory", "service.app:create_app"),
            *("--port", str(PORT), "--log-level", "error"),
        ],
        cwd=ROOT,
        env=os.environ
        | {
            "TFBBB_ADMIN_KEY": KEY,
            "TFBBB_DATA_DIR": str(settings.data_dir),
            "TFBBB_MODELS": str(settings.models),
            "TFBBB_START_MODELS": "false",
            "TFBBB_START_DISPATCHER": "false",
        },
    )
    headers = {"Authorization": f"Bearer {KEY}"}
    url = f"http://127.0.0.1:{PORT}"
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            wait_until_it_answers(client, process)
            yield client
    finally:
        process.terminate()
        process.wait()


def wait_until_it_answers(client: httpx.Client, process: subprocess.Popen) -> None:
    """Waits for the first response."""
    while process.poll() is None:
        try:
            client.get("/health/live").raise_for_status()
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit("The service has ended at its start.")


def requests(client: httpx.Client, ids: list[str]) -> dict[str, Callable[[], str]]:
    """Returns functions that make the URLs of requests, each of another job or page."""
    chance = random.Random(1)
    cursors = [client.get("/v1/jobs", params={"limit": 500}).json()["next_cursor"]]
    while cursors[-1] is not None:
        page = {"limit": 500, "cursor": cursors[-1]}
        cursors.append(client.get("/v1/jobs", params=page).json()["next_cursor"])
    return {
        "list, newest 50": lambda: "/v1/jobs",
        "list, any 50": lambda: f"/v1/jobs?cursor={chance.choice(cursors[:-1])}",
        "list, 50 that failed": lambda: "/v1/jobs?state=failed",
        "list, 50 of a model": lambda: (
            f"/v1/jobs?name=model_{chance.randrange(MODELS)}"
        ),
        "list, failed ones of a model": lambda: (
            f"/v1/jobs?state=failed&name=model_{chance.randrange(MODELS)}"
        ),
        "get one": lambda: f"/v1/jobs/{chance.choice(ids)}",
        "get one with a long log": lambda: f"/v1/jobs/{chance.choice(ids[::100])}",
    }


def timer(client: httpx.Client, url: Callable[[], str]) -> Callable[[], float]:
    """Returns a function that sends a request and returns its milliseconds."""

    def milliseconds() -> float:
        place = url()
        begin = time.perf_counter()
        client.get(place).raise_for_status()
        return 1e3 * (time.perf_counter() - begin)

    return milliseconds


def percentiles(values: list[float]) -> dict[str, float]:
    """Returns the median and the 95th percentile."""
    twentieths = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": twentieths[9], "p95": twentieths[18]}


if __name__ == "__main__":
    main()
