"""Checks whether the service is ready for requests."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Awaitable, Callable

import sqlalchemy
from sqlalchemy.exc import DBAPIError

from service.api.models.repository import version_times
from service.api.state import ServiceState
from service.shared.database import DatabaseFileError
from service.shared.errors import ServiceError, Unavailable
from service.shared.store import StoreError

logger = logging.getLogger(__name__)

_SECONDS_TO_ANSWER = 3.0
# What the service does meanwhile.
_WITHOUT_DATABASE = (
    " Loaded models go on predicting by the keys and labels known so far; nothing new "
    "is accepted."
)


async def check_ready(state: ServiceState) -> None:
    """Raises `Unavailable` that names every part that is not ready, and why."""
    parts: dict[str, Callable[[ServiceState], Awaitable[None]]] = {
        "database": _check_database,
        "disk": _check_disk,
        "store": _check_store,
        "models": _check_models,
    }
    problems = await asyncio.gather(
        *(_problem(name, check, state) for name, check in parts.items())
    )
    if any(problems):
        raise Unavailable(" ".join(filter(None, problems)))


async def check_predicting(state: ServiceState) -> None:
    """Raises `Unavailable` until the models are loaded or known to be broken."""
    problem = await _problem("models", _check_models, state)
    if problem is not None:
        raise Unavailable(problem)


async def _problem(
    name: str, check: Callable[[ServiceState], Awaitable[None]], state: ServiceState
) -> str | None:
    try:
        await asyncio.wait_for(check(state), _SECONDS_TO_ANSWER)
    except ServiceError as error:
        return f"{name}: {error}"
    except TimeoutError:
        meanwhile = _WITHOUT_DATABASE if name == "database" else ""
        return f"{name}: No answer in {_SECONDS_TO_ANSWER:g} s.{meanwhile}"
    except DatabaseFileError as error:
        # Reported once, although other checks may fail for the same reason.
        return f"{name}: {error.orig}" if name == "database" else None
    except DBAPIError as error:
        # The endpoint needs no key, so only the log gets the address.
        logger.warning("the database does not answer: %s", error.orig)
        meanwhile = _WITHOUT_DATABASE if name == "database" else ""
        return f"{name}: The database does not answer.{meanwhile}"
    return None


async def _check_database(state: ServiceState) -> None:
    def ask() -> None:
        state.database.check()
        with state.database.reading() as session:
            session.execute(sqlalchemy.select(1))

    await asyncio.to_thread(ask)


async def _check_disk(state: ServiceState) -> None:
    # A network disk may not answer; other requests must not wait for it.
    await asyncio.to_thread(_check_free_space, state)
    if state.queue.store.is_directory:
        await asyncio.to_thread(_check_models_directory, state)


def _check_free_space(state: ServiceState) -> None:
    least = state.settings.min_free_bytes
    # The endpoint needs no key, so its response contains no paths.
    for what, directory in (
        ("data directory", state.settings.data_dir),
        ("models directory", state.queue.store.models),
    ):
        if not directory.is_dir():
            raise Unavailable(f"There is no {what}.")
        free = shutil.disk_usage(directory).free
        if free < least:
            raise Unavailable(
                f"The {what} has {free} free bytes, but needs {least} "
                "(TFBBB_MIN_FREE_BYTES)."
            )


def _check_models_directory(state: ServiceState) -> None:
    store = state.queue.store
    if state.settings.job_slots:
        try:
            store.check()
        except StoreError as error:
            raise Unavailable(
                f"The models directory cannot be written: {error.strerror}; no job can "
                "train."
            ) from None
    with contextlib.suppress(DBAPIError):  # The check of the database reports it.
        recorded = sorted(version_times(state.database))
        if recorded and not any(store.version(*one).is_dir() for one in recorded):
            name, number = recorded[-1]
            raise Unavailable(
                f"The models directory has none of the {len(recorded)} recorded "
                f"versions, such as version {number} of {name!r}; is it mounted? "
                "Versions that are loaded are still served."
            )


async def _check_store(state: ServiceState) -> None:
    store = state.queue.store
    if store.is_directory:
        return  # The disk is the store.
    try:
        await asyncio.to_thread(store.ping)
    except StoreError as error:
        # The endpoint needs no key, so only the log gets the address.
        logger.warning("the store does not answer: %s", error)
        raise Unavailable("The store does not answer.") from None


async def _check_models(state: ServiceState) -> None:
    await state.models.check_ready()
