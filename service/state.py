from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from service.models.registry import Registry
from service.settings import Settings


@dataclass(frozen=True)
class ServiceState:
    """What lives from start-up to shut-down.

    Args:
        settings: The operator's choices.
        registry: The models.
        workers: Where answers are computed, so that the event loop stays free.
    """

    settings: Settings
    registry: Registry
    workers: ThreadPoolExecutor


async def _service_state(request: Request) -> ServiceState:
    return cast(ServiceState, request.state.service)


State = Annotated[ServiceState, Depends(_service_state)]
