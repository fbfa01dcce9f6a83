"""`tfbbb worker`."""

from typing import Annotated

import typer

from tfbbb.base.extras import import_extra
from tfbbb.base.tensorflow_startup import require_tensorflow
from tfbbb.cli.errors import CommandError
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    Models,
    service_database,
    service_settings,
)

_SECONDS_BETWEEN_SUBMISSIONS = 2.0


def worker(
    job: Annotated[
        str | None, typer.Option(help="Run this queued job alone, and print its log.")
    ] = None,
    models: Models = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="Run each job on the Ray cluster with this Jobs API, http://HOST:8265."
        ),
    ] = None,
    ray_cpus: Annotated[
        float, typer.Option(min=0, help="Cores that Ray reserves for a job.")
    ] = 1.0,
    ray_gpus: Annotated[
        float, typer.Option(min=0, help="GPUs that Ray reserves for a job.")
    ] = 0.0,
    prepare: Annotated[
        bool,
        typer.Option(help="Import TensorFlow when a table is uploaded, for its job."),
    ] = True,
    until_input_ends: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Train the queued jobs of a service, one after the other.

    `tfbbb serve` starts some (TFBBB_JOB_SLOTS). Workers on other machines need
    the same PostgreSQL database, and the same object store or disk. A worker
    computes with half of the cores; TF_NUM_INTRAOP_THREADS and OMP_NUM_THREADS
    change that. SIGTERM and Ctrl-C save the job, which returns to the queue.

    Example: tfbbb worker --database-url postgresql://tfbbb@db.example/tfbbb
    """
    from service.job_process.process import end_process, leave_half_of_the_cores

    leave_half_of_the_cores()
    from service.job_process.upkeep import repeat
    from service.job_process.worker import run_worker, stop_on_signals
    from service.shared.logs import configure_logging
    from service.shared.queue import Queue

    configure_logging("worker")
    settings = service_settings(
        models=models, data_dir=data_dir, database_url=database_url
    )
    stopping = stop_on_signals(until_input_ends=until_input_ends)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with service_database(settings, starting=True) as database:
        queue = Queue(database, settings)
        if ray_address is not None:
            if database.is_sqlite and not _is_this_machine(ray_address):
                raise CommandError(
                    "Workers on other machines cannot share a SQLite database; "
                    "name a PostgreSQL database with --database-url. Received: "
                    f"{database.name}"
                )
            (ray_jobs,) = import_extra("ray", "service.job_process.ray_jobs")
            jobs = ray_jobs.RayJobs(queue, ray_address, cpus=ray_cpus, gpus=ray_gpus)
            repeat(jobs.step, stopping, _SECONDS_BETWEEN_SUBMISSIONS)
            code = 0
        else:
            require_tensorflow("Training")
            from service.job_process.table_trainer import TableTrainer

            trainer = TableTrainer(settings)
            code = run_worker(queue, trainer, stopping, job_id=job, prepares=prepare)
    end_process(code)


def _is_this_machine(address: str) -> bool:
    from urllib.parse import urlsplit

    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")
