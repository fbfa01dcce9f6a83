"""Removes what the settings no longer keep, after it was shown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from service.api.retention.kinds import KINDS, Item, Kind
from service.api.state import ServiceState
from service.shared.data_directory import free_reserve, write_reserve
from service.shared.database import Actor, acting
from service.shared.errors import ServiceError

logger = logging.getLogger(__name__)

_SECONDS_TO_START = 60.0
_PERIOD = 3600.0
_SHOWN = 20


class Outcome(NamedTuple):
    """The things of a kind that are not kept any longer, or that were removed.

    Args:
        kind: Their kind.
        items: The things, oldest first.
        problem: Why they are not known; None if they are.
    """

    kind: Kind
    items: Sequence[Item]
    problem: str | None = None

    @property
    def num_bytes(self) -> int:
        """The bytes of all of them."""
        return sum(item.num_bytes for item in self.items)

    def __str__(self) -> str:
        """Describes them in the log."""
        named = ", ".join(item.subject for item in self.items[:_SHOWN])
        more = ", ..." if len(self.items) > _SHOWN else ""
        return (
            f"{len(self.items)} {self.kind.name} of {self.num_bytes} bytes: "
            f"{named}{more}"
        )


async def find(state: ServiceState) -> list[Outcome]:
    """Finds what a removal would remove now."""
    return [await _find(state, kind) for kind in KINDS]


async def remove(state: ServiceState) -> list[Outcome]:
    """Removes what `find` finds; logs and returns what went.

    What only this removal makes superfluous, such as the dataset of a job, is found by
    the next one, so that it is shown before it goes.
    """
    outcomes = []
    await asyncio.to_thread(free_reserve, state.settings)
    for found in await find(state):
        kind = found.kind
        removed = [item for item in found.items if await _remove(state, kind, item)]
        outcomes.append(found._replace(items=removed))
        if removed:
            # What is gone must be in the log, whatever its level.
            logger.warning("retention removed %s", outcomes[-1])
    await asyncio.to_thread(write_reserve, state.settings)
    return outcomes


async def tend(
    state: ServiceState, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Removes every hour, for ever; the first hour after the start only announces."""
    await sleep(_SECONDS_TO_START)
    try:
        for outcome in await find(state):
            if outcome.items:
                logger.warning(
                    "in an hour, retention removes %s (`tfbbb remote retention` lists "
                    "what goes)",
                    outcome,
                )
    except Exception:
        logger.exception("could not look for what is not kept any longer")
    while True:
        await sleep(_PERIOD)
        try:
            with acting(Actor("retention")):
                await remove(state)
        except Exception:
            logger.exception("could not remove what is not kept any longer")


async def _find(state: ServiceState, kind: Kind) -> Outcome:
    def now() -> float:
        with state.database.reading() as session:
            return state.database.now(session)

    try:
        items = await kind.find(state, await asyncio.to_thread(now))
    except (ServiceError, OSError) as error:
        return Outcome(kind, (), str(error))
    return Outcome(kind, sorted(items, key=lambda item: item.since))


async def _remove(state: ServiceState, kind: Kind, item: Item) -> bool:
    try:
        await kind.remove(state, item)
    except (ServiceError, OSError) as error:
        # Something came to need it, another service was faster, or the disk fails.
        logger.info("kept %s of the %s: %s", item.subject, kind.name, error)
        return False
    return True
