import asyncio

from service.api.labels import repository
from service.api.labels.schemas import LATEST
from service.api.state import ServiceState


async def version_behind(state: ServiceState, name: str, label: str) -> int | None:
    """The version that a label points at now; None of `latest`, which the models know.

    Labels are looked up at each request, since any process may move them.

    Raises:
        UnknownLabel: If there is no such label.
    """
    if label == LATEST:
        return None
    return await asyncio.to_thread(repository.version_of, state.database, name, label)
