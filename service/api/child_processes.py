"""Starts and stops the model processes and the dispatcher."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from service.api.models.watchdog import Watchdog
from service.api.supervision import SupervisedProcess
from service.shared.settings import Settings

_DISPATCHER = "service.job_process.dispatcher"

# A dispatcher waits for its trainers to save their jobs.
_SECONDS_TO_STOP_DISPATCHER = 35.0
_SECONDS_TO_STOP_MODELS = 5.0


class Children(NamedTuple):
    """The child processes of the API; the settings can disable each kind.

    The model processes are keyed by the paths of the sockets on which they listen.
    """

    models: Mapping[Path, SupervisedProcess]
    dispatcher: SupervisedProcess


@asynccontextmanager
async def child_processes(
    settings: Settings, directory: Path, stopping: asyncio.Event
) -> AsyncIterator[Children]:
    """Runs the child processes that the settings enable until the block ends.

    At shutdown the dispatcher stops at once and requeues its jobs, while the API still
    finishes requests. The model processes stop last, when no request is left.

    Args:
        settings: The settings of the service.
        directory: A directory for the sockets of the model processes.
        stopping: Set at shutdown.
    """
    environment = os.environ | settings.environment()
    # The child processes read keys from the database.
    environment.pop("TFBBB_ADMIN_KEY", None)

    def process(name: str, module: str, *arguments: str) -> SupervisedProcess:
        command = [sys.executable, "-m", module, *arguments]
        return SupervisedProcess(name, command, environment)

    models = {
        (path := directory / f"models-{number}"): process(
            f"model process {number}", "service.model_process.worker", str(path)
        )
        for number in range(settings.model_processes)
    }
    dispatcher = process("the dispatcher", _DISPATCHER, "--until-input-ends")

    async def dispatch() -> None:
        dispatcher.start()
        try:
            await stopping.wait()
        finally:
            await asyncio.to_thread(dispatcher.stop, _SECONDS_TO_STOP_DISPATCHER)

    watchdogs = [
        Watchdog(models[path], path, settings.heartbeat_seconds) for path in models
    ]
    if settings.start_models:
        for model in models.values():
            model.start()
        for watchdog in watchdogs:
            watchdog.start()
    dispatching = asyncio.create_task(dispatch()) if settings.start_dispatcher else None
    try:
        yield Children(models, dispatcher)
    finally:
        stopping.set()
        if dispatching is not None:
            await dispatching
        if settings.start_models:
            for watchdog in watchdogs:
                watchdog.stop()
            stop = [
                asyncio.to_thread(model.stop, _SECONDS_TO_STOP_MODELS)
                for model in models.values()
            ]
            await asyncio.gather(*stop)
