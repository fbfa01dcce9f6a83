"""Deletes versions that nothing needs."""

import asyncio

from service.api.state import ServiceState
from service.shared.errors import VersionInUse
from service.shared.model_messages import ModelStatus, VersionState
from service.shared.version_deletion import delete_version, finish_deletions


async def remove_version(state: ServiceState, name: str, number: int) -> None:
    """Deletes the files of an unused version; its number is never used again."""
    await state.models.version(name, number)  # Raises if it does not exist.
    _check_is_not_latest(await state.models.model(name), number)
    store = state.queue.store
    await asyncio.to_thread(delete_version, state.database, store, name, number)
    await asyncio.to_thread(finish_deletions, state.database, store)
    await state.models.rescan()


def _check_is_not_latest(status: ModelStatus, number: int) -> None:
    """Raises `VersionInUse` if a version is `latest`, or may become it at once."""
    good = (
        version.version
        for version in status.model_version_status
        if version.state is not VersionState.END
    )
    if str(number) == status.labels.get("latest", next(good, None)):
        raise VersionInUse(
            f"Version {number} of the model {status.name!r} is `latest`, which "
            "predicts by default; publish a newer version, or make another one "
            "`latest`, first."
        )
