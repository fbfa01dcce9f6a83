"""Answers of the database, which are used for a while when it is slow or lost."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.api.http.errors import DATABASE_OUTAGES
from service.shared.errors import ServiceError

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# Time in which the database must answer where an answer is known, and for which the
# known one is then used without asking.
_PATIENCE_SECONDS = 1.0
_SECONDS_WITHOUT_ASKING = 5.0


@dataclass
class _Known(Generic[V]):
    value: V
    asked_at: float
    ask_again_at: float


class LastKnown(Generic[K, V]):
    """The last answers of the database by what was asked.

    An answer is used without asking for `fresh_seconds`, and for `valid_seconds` while
    the database does not answer.
    """

    def __init__(
        self, fresh_seconds: float = 0.0, valid_seconds: float = math.inf
    ) -> None:
        self._fresh_seconds = fresh_seconds
        self._valid_seconds = valid_seconds
        self._known: dict[K, _Known[V]] = {}

    def clear(self) -> None:
        """Forgets all answers."""
        self._known = {}

    async def get(self, key: K, ask: Callable[[], V]) -> V:
        """Returns the answer of `ask`, which queries the database in a thread."""
        # If `clear` replaces the answers meanwhile, no change here is ever read.
        answers, now = self._known, time.monotonic()
        known = answers.get(key)
        if known is not None and now < known.ask_again_at:
            return known.value
        if known is not None and now >= known.asked_at + self._valid_seconds:
            known = None
        patience = None if known is None else _PATIENCE_SECONDS
        try:
            value = await asyncio.wait_for(asyncio.to_thread(ask), patience)
        except ServiceError:
            answers.pop(key, None)
            raise
        except (TimeoutError, *DATABASE_OUTAGES) as error:
            if known is None:
                raise
            logger.warning("keys and labels are used as they were known: %r", error)
            known.ask_again_at = now + _SECONDS_WITHOUT_ASKING
            return known.value
        newest = answers.get(key)
        # A slow answer must not replace a newer one.
        if newest is None or now >= newest.asked_at:
            answers[key] = _Known(value, now, now + self._fresh_seconds)
        return value
