"""Seconds that a job takes longer on a Ray cluster than on this machine.

    python benchmarks/ray_jobs.py

The same small job is trained in turn by a new local process and by a Ray job on a
cluster of one node on this machine, from its lease to its published version. A warm
local process, which has TensorFlow imported, is the third.
"""

import argparse
import csv
import hashlib
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster
from timing import interleaved, machine, print_table, write_json

from service.api.jobs.schemas import JobRequest
from service.job_process.dispatcher import Dispatcher
from service.job_process.launcher import Launcher, LocalLauncher
from service.job_process.ray_launcher import RayLauncher
from service.shared.database import Database, upgrade
from service.shared.database.tables import Job
from service.shared.queue import Queue
from service.shared.settings import Settings

ROWS = 500
EPOCHS = 2
COLD, WARM, RAY = "local, new process", "local, warm process", "Ray"


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="jobs of each kind")
    options = parser.parse_args()
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": True, "dashboard_port": 0},
    )
    try:
        with tempfile.TemporaryDirectory() as directory:
            address = f"http://{cluster.head_node.webui_url}"
            measured = measure(Path(directory), address, options.rounds)
    finally:
        cluster.shutdown()
    median = {name: statistics.median(values) for name, values in measured.items()}
    results = {
        "machine": machine(),
        "ray": ray.__version__,
        "rounds": options.rounds,
        "seconds": {
            name: {"median": median[name], "worst": max(values)}
            for name, values in measured.items()
        },
        "overhead_of_ray": median[RAY] - median[COLD],
    }
    rows = [
        [name, f"{figures['median']:.1f}", f"{figures['worst']:.1f}"]
        for name, figures in results["seconds"].items()
    ]
    print_table("One job, from lease to version", ["", "median, s", "worst, s"], rows)
    print(f"Ray takes {results['overhead_of_ray']:.1f} s longer than a new process.")
    write_json(__file__, results)


def measure(directory: Path, address: str, rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of each job, by the way that it is started."""
    settings = Settings(
        data_dir=directory / "data",
        models=directory / "models",
        ray_address=address,
        ray_python=sys.executable,
        job_slots=1,
    )
    settings.models.mkdir()
    settings.data_dir.mkdir()
    dataset = write_dataset(settings)
    queue = Queue(Database(settings.effective_database_url), settings)
    upgrade(queue.database, settings.data_dir)
    cold = settings.model_copy(update={"warm_seconds": 0.0})
    dispatchers = {
        COLD: Dispatcher(queue, LocalLauncher(cold)),
        WARM: Dispatcher(queue, LocalLauncher(settings)),
        RAY: Dispatcher(queue, RayLauncher(settings)),
    }
    # The first job of the warm process starts it, and the first Ray job its workers.
    for dispatcher in (dispatchers[WARM], dispatchers[RAY]):
        run_job(queue, dispatcher, dataset)
    contenders = {
        name: lambda dispatcher=dispatcher: run_job(queue, dispatcher, dataset)
        for name, dispatcher in dispatchers.items()
    }
    measured = interleaved(contenders, rounds, "jobs")
    for name in (COLD, WARM):
        launcher: Launcher = dispatchers[name]._launcher
        launcher.close(10.0)
    queue.database.close()
    return measured


def run_job(queue: Queue, dispatcher: Dispatcher, sha256: str) -> float:
    """Runs one job; returns the seconds from its lease to its end."""
    request = JobRequest(
        dataset_id="0" * 24, name="model", target="y", training={"epochs": EPOCHS}
    )
    job = Job(
        name="model",
        dataset_sha256=sha256,
        dataset_format="csv",
        spec=request.spec(),
        progress={},
        created_at=time.time(),
    )
    with queue.database.writing() as session:
        queue.submit(session, job)
        job_id = job.id
    while True:
        dispatcher.step()
        with queue.database.reading() as session:
            found = session.get_one(Job, job_id)
        if found.state == "failed":
            raise SystemExit(f"The job failed: {found.error}")
        idle = not dispatcher._launcher.running()
        if found.state == "succeeded" and idle:
            assert found.finished_at is not None
            assert found.started_at is not None
            return found.finished_at - found.started_at
        time.sleep(0.1)


def write_dataset(settings: Settings) -> str:
    """Writes a small table into the store; returns its SHA-256."""
    chance = random.Random(0)
    path = settings.data_dir / "table"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y"])
        for _ in range(ROWS):
            x = chance.gauss(0.0, 1.0)
            writer.writerow([x, 2.0 * x + chance.gauss(0.0, 0.1)])
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    (settings.data_dir / "datasets").mkdir()
    path.rename(settings.data_dir / "datasets" / f"{sha256}.csv")
    return sha256


if __name__ == "__main__":
    main()
