"""Starts and stops the model process and the dispatcher."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
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
    """The child processes of the API; the settings can disable each of them."""

    models: SupervisedProcess
    dispatcher: SupervisedProcess


@asynccontextmanager
async def child_processes(
    settings: Settings, socket: Path, stopping: asyncio.Event
) -> AsyncIterator[Children]:
    """Runs the child processes that the settings enable until the block ends.

    At shutdown the dispatcher stops at once and requeues its jobs, while the API still
    finishes requests. The model process stops last, when no request is left.

    Args:
        settings: The settings of the service.
        socket: Path of the socket on which the model process listens.
        stopping: Set at shutdown.
    """
    environment = os.environ | settings.environment()
    # The child processes read keys from the database.
    environment.pop("TFBBB_ADMIN_KEY", None)

    def process(name: str, module: str, *arguments: str) -> SupervisedProcess:
        command = [sys.executable, "-m", module, *arguments]
        return SupervisedProcess(name, command, environment)

    models = process("the model process", "service.model_process.worker", str(socket))
    dispatcher = process("the dispatcher", _DISPATCHER, "--until-input-ends")

    async def dispatch() -> None:
        dispatcher.start()
        try:
            await stopping.wait()
        finally:
            await asyncio.to_thread(dispatcher.stop, _SECONDS_TO_STOP_DISPATCHER)

    watchdog = Watchdog(models, socket, settings.heartbeat_seconds)
    if settings.start_models:
        models.start()
        watchdog.start()
    dispatching = asyncio.create_task(dispatch()) if settings.start_dispatcher else None
    try:
        yield Children(models, dispatcher)
    finally:
        stopping.set()
        if dispatching is not None:
            await dispatching
        if settings.start_models:
            watchdog.stop()
            await asyncio.to_thread(models.stop, _SECONDS_TO_STOP_MODELS)
