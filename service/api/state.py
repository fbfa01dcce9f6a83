"""The state of the API, as endpoints receive it."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from service.api.datasets.store import DatasetStore
from service.api.keys.keyring import Keyring
from service.api.labels.repository import LabelRoutes
from service.api.metrics.collectors import Registries
from service.api.models.latest_version import LatestVersionBarrier
from service.api.sandbox import Sandbox
from service.predicting.models import Models
from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings


@dataclass(frozen=True)
class ServiceState:
    """The objects that live from start-up to shutdown.

    Args:
        settings: The settings of the service.
        database: Holds keys, datasets, jobs and versions.
        keyring: Identifies callers by their keys.
        models: The models of this process.
        latest_version: Delays reporting a success until its version serves requests.
        routes: The versions of labels, for predictions.
        queue: The training jobs.
        metrics: The metrics of the API.
        stopping: Set at shutdown; long-running requests must finish.
        datasets: The uploaded tables.
        sandbox: Runs functions on uploaded files.
    """

    settings: Settings
    database: Database
    keyring: Keyring
    models: Models
    latest_version: LatestVersionBarrier
    routes: LabelRoutes
    queue: Queue
    metrics: Registries
    stopping: asyncio.Event
    datasets: DatasetStore
    sandbox: Sandbox


async def _service_state(request: Request) -> ServiceState:
    return cast(ServiceState, request.state.service)


State = Annotated[ServiceState, Depends(_service_state)]
