"""`/health` and `/v2/health`: whether the service runs, and whether it is ready."""

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Awaitable

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from service.api.state import ServiceState, State
from service.shared.database.tables import ModelVersion
from service.shared.errors import ServiceError, Unavailable
from service.shared.living_workers import any_worker_lives
from service.shared.store import StoreError

logger = logging.getLogger(__name__)

_SECONDS_TO_ANSWER = 3.0
# A worker that starts anew is away for a second or two.
_SECONDS_FOR_A_WORKER, _SECONDS_BETWEEN_LOOKS = 3.0, 0.2
_WITHOUT_DATABASE = (
    " Loaded models go on predicting by the keys and labels known so far; nothing new "
    "is accepted."
)

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The response of a healthy service."""

    status: str


@router.get("/health/live", summary="Whether the process runs")
async def live() -> Health:
    """Answers as soon as the process runs."""
    return Health(status="live")


@router.get("/health/ready", summary="Whether all parts work")
async def ready(state: State) -> Health:
    """Answers 503 with each part that fails: database, disk, store, models."""
    await _check_ready(state)
    return Health(status="ready")


@router.get("/health/predicting", summary="Whether predictions are answered")
async def predicting(state: State) -> Health:
    """Answers 200 while the models answer, also without database or store.

    A proxy before several services sends predictions to those that answer 200.
    """
    await _check(models=state.models.check_ready())
    return Health(status="predicting")


@router.get("/health/training", summary="Whether a worker trains here")
async def training(state: State) -> Health:
    """Answers 200 while a worker lives on this machine, which trains queued jobs."""
    end = time.monotonic() + _SECONDS_FOR_A_WORKER
    while not await asyncio.to_thread(any_worker_lives, state.settings):
        if time.monotonic() > end:
            raise Unavailable(
                "No worker lives on this machine: jobs stay queued until another "
                "machine trains them."
            )
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
    return Health(status="training")


@router.get("/v2/health/live", name="v2_live", summary="Whether the process runs")
async def v2_live() -> dict[str, bool]:
    """Answers as soon as the process runs."""
    return {"live": True}


@router.get("/v2/health/ready", name="v2_ready", summary="Whether all parts work")
async def v2_ready(state: State) -> dict[str, bool]:
    """Answers 503 with each part that fails: database, disk, store, models."""
    await _check_ready(state)
    return {"ready": True}


async def _check_ready(state: ServiceState) -> None:
    # A network disk may not answer; other requests must not wait for it.
    await _check(
        database=asyncio.to_thread(_check_database, state),
        disk=asyncio.to_thread(_check_disk, state),
        store=asyncio.to_thread(_check_store, state),
        models=state.models.check_ready(),
    )


async def _check(**parts: Awaitable[None]) -> None:
    """Raises `Unavailable` that names every part that fails, and why."""
    problems = await asyncio.gather(*map(_problem, parts, parts.values()))
    if any(problems):
        raise Unavailable(" ".join(filter(None, problems)))


async def _problem(name: str, check: Awaitable[None]) -> str | None:
    # The endpoints need no key, so only the log gets addresses and paths.
    try:
        await asyncio.wait_for(check, _SECONDS_TO_ANSWER)
        return None
    except ServiceError as error:
        return f"{name}: {error}"
    except TimeoutError:
        problem = f"No answer in {_SECONDS_TO_ANSWER:g} s."
    except DBAPIError as error:
        logger.warning("the database does not answer: %s", error.orig)
        problem = "The database does not answer."
    except StoreError as error:
        logger.warning("the store does not answer: %s", error)
        problem = "The store does not answer."
    return f"{name}: {problem}{_WITHOUT_DATABASE if name == 'database' else ''}"


def _check_database(state: ServiceState) -> None:
    if state.database.path is not None and not state.database.path.is_file():
        raise Unavailable("Its file is gone: stop the service, restore a backup.")
    with state.database.reading() as session:
        session.execute(select(1))


def _check_disk(state: ServiceState) -> None:
    least = state.settings.min_free_bytes
    for what, directory in (
        ("data directory", state.settings.data_dir),
        ("models directory", state.queue.store.models),
    ):
        if not directory.is_dir():
            raise Unavailable(f"There is no {what}.")
        free = shutil.disk_usage(directory).free
        if free < least:
            needed = f"needs {least} (TFBBB_MIN_FREE_BYTES)"
            raise Unavailable(f"The {what} has {free} free bytes, but {needed}.")


def _check_store(state: ServiceState) -> None:
    store = state.queue.store
    if not store.is_directory:
        store.ping()
        return
    if state.settings.job_slots:
        try:
            store.check()
        except StoreError as error:
            why = f"cannot be written: {error.strerror}; no job can train."
            raise Unavailable(f"The models directory {why}") from None
    columns = select(ModelVersion.name, ModelVersion.number)
    recorded: list[tuple[str, int]] = []
    with contextlib.suppress(DBAPIError), state.database.reading() as session:
        kept = session.execute(columns.where(ModelVersion.deleted_at.is_(None)))
        recorded = sorted((row.name, row.number) for row in kept)
    if recorded and not any(store.version(*one).is_dir() for one in recorded):
        name, number = recorded[-1]
        raise Unavailable(
            f"The models directory has none of the {len(recorded)} recorded versions, "
            f"such as version {number} of {name!r}; is it mounted? Versions that are "
            "loaded are still served."
        )
