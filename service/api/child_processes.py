"""Starts and stops model processes, workers that train, and further API processes."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from service.api.models.watchdog import Watchdog
from service.api.server import SECONDS_TO_FINISH_REQUESTS
from service.api.shared_counters import VARIABLE
from service.api.supervision import SupervisedProcess
from service.shared.settings import Settings

_MODELS = "service.model_process.worker"
_TRAINING = ("tfbbb", "worker")
_WORKER = "service.api.worker"

_SECONDS_TO_STOP_WORKER = SECONDS_TO_FINISH_REQUESTS + 5.0
# Workers save their jobs.
_SECONDS_TO_STOP_TRAINING = 35.0
_SECONDS_TO_STOP_MODELS = 5.0


@asynccontextmanager
async def child_processes(
    settings: Settings,
    directory: Path,
    stopping: asyncio.Event,
    listener: socket.socket | None,
) -> AsyncIterator[Mapping[Path, SupervisedProcess]]:
    """Runs the child processes that the settings enable until the block ends.

    Yields the model processes, by the paths of the sockets on which they listen. At
    shutdown the workers requeue their jobs at once, while the API processes still
    finish requests. The model processes stop last, when no request is left.
    """
    of_workers = os.environ | settings.environment()
    # The child processes read keys from the database.
    of_workers.pop("TFBBB_ADMIN_KEY", None)
    # The counters of other processes are not those of the API.
    of_others = {k: v for k, v in of_workers.items() if k != VARIABLE}

    def process(name: str, module: str, *arguments: str) -> SupervisedProcess:
        command = [sys.executable, "-m", module, *arguments]
        return SupervisedProcess(name, command, of_others)

    models = {
        path: process(f"model process {number}", _MODELS, str(path))
        for number, path in enumerate(model_sockets(settings, directory))
    }
    running = [
        _run(worker, stopping, _SECONDS_TO_STOP_WORKER)
        for worker in _workers(settings, directory, listener, of_workers)
    ]
    for number in range(1, settings.job_slots + 1):
        # One of them is enough to be ready for the job that follows an upload.
        prepare = "--prepare" if number == 1 else "--no-prepare"
        worker = process(f"worker {number}", *_TRAINING, prepare, "--until-input-ends")
        running.append(_run(worker, stopping, _SECONDS_TO_STOP_TRAINING))

    watchdogs = [
        Watchdog(models[path], path, settings.heartbeat_seconds) for path in models
    ]
    if settings.start_models:
        for model in models.values():
            model.start()
        for watchdog in watchdogs:
            watchdog.start()
    tasks = [asyncio.create_task(process) for process in running]
    try:
        yield models
    finally:
        stopping.set()
        await asyncio.gather(*tasks)
        if settings.start_models:
            for watchdog in watchdogs:
                watchdog.stop()
            stop = [
                asyncio.to_thread(model.stop, _SECONDS_TO_STOP_MODELS)
                for model in models.values()
            ]
            await asyncio.gather(*stop)


def model_sockets(settings: Settings, directory: Path) -> list[Path]:
    """Returns the paths of the sockets on which the model processes listen."""
    return [directory / f"models-{n}" for n in range(settings.model_processes)]


def _workers(
    settings: Settings,
    directory: Path,
    listener: socket.socket | None,
    environment: Mapping[str, str],
) -> list[SupervisedProcess]:
    if listener is None:
        return []
    number = listener.fileno()
    command = [sys.executable, "-m", _WORKER, str(number), str(directory)]
    return [
        SupervisedProcess(f"API process {n}", command, environment, [number])
        for n in range(1, settings.workers)
    ]


async def _run(
    process: SupervisedProcess, stopping: asyncio.Event, seconds: float
) -> None:
    """Runs a process until the shutdown, at which it may take some seconds to end."""
    process.start()
    try:
        await stopping.wait()
    finally:
        await asyncio.to_thread(process.stop, seconds)
