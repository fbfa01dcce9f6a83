"""The state of the API, as endpoints receive it."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from service.api.datasets.store import DatasetStore
from service.api.keys.keyring import Keyring
from service.api.labels.repository import LabelRoutes
from service.api.metrics import Registries
from service.api.sandbox import Sandbox
from service.predicting.models import Models
from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings


@dataclass(frozen=True)
class ServiceState:
    """The objects that live from start-up to shutdown."""

    settings: Settings
    database: Database
    keyring: Keyring
    models: Models
    routes: LabelRoutes
    queue: Queue
    metrics: Registries
    # Set at shutdown; long-running requests must finish.
    stopping: asyncio.Event
    datasets: DatasetStore
    sandbox: Sandbox
    # Versions that have answered since their jobs succeeded.
    served: set[tuple[str, int]] = field(default_factory=set)


async def _service_state(request: Request) -> ServiceState:
    return cast(ServiceState, request.state.service)


State = Annotated[ServiceState, Depends(_service_state)]
