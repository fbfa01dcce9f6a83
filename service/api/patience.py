"""Bounds the time for which predictions wait for the database."""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from service.api.http.outages import DATABASE_OUTAGES, without_statement

logger = logging.getLogger(__name__)

# Time in which the database must answer a query that has a known result.
SECONDS_TO_WAIT = 1.0
# Pause after a query that failed.
_SECONDS_BETWEEN_TRIES = 1.0
# Threads of their own, so that queries of other requests do not delay these.
_THREADS = 8

T = TypeVar("T")


class NoAnswerError(Exception):
    """The database has not answered in time, or failed: use the known result."""


@dataclass
class _Trouble:
    """A query that the database did not answer in time.

    Attributes:
        retry_at: Time of `time.monotonic` from which the query may be repeated.
        retry: The query that runs in the background, if any.
    """

    retry_at: float
    retry: asyncio.Task[None] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the query runs in the background."""
        return self.retry is not None and not self.retry.done()


class Patience:
    """Runs queries of requests that can go on without their results.

    A request waits for the database for a second at most. From then on no request
    waits: the query runs in the background, one at a time, until the database answers
    in time again.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "queries")
        self._troubles: dict[Hashable, _Trouble] = {}

    async def ask(self, subject: Hashable, query: Callable[[], T]) -> T:
        """Runs a query, which stores its result itself for later requests."""
        trouble = self._troubles.get(subject)
        if trouble is not None:
            if not trouble.is_asked and time.monotonic() >= trouble.retry_at:
                trouble.retry = asyncio.create_task(self._retry(subject, query))
            raise NoAnswerError
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._threads, query)
        try:
            # On time-out, a query that waits for a thread is dropped.
            return await asyncio.wait_for(running, SECONDS_TO_WAIT)
        except TimeoutError:
            self._note(subject, f"no answer in {SECONDS_TO_WAIT:g} s")
            raise NoAnswerError from None
        except DATABASE_OUTAGES as error:
            self._note(subject, without_statement(error))
            raise NoAnswerError from error

    def _note(self, subject: Hashable, reason: str) -> None:
        if subject not in self._troubles:
            logger.warning("%s is used as it was known: %s", subject, reason)
        self._troubles[subject] = _Trouble(time.monotonic() + _SECONDS_BETWEEN_TRIES)

    async def _retry(self, subject: Hashable, query: Callable[[], object]) -> None:
        begin = time.monotonic()
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, query)
        except DATABASE_OUTAGES:
            self._troubles[subject] = _Trouble(
                time.monotonic() + _SECONDS_BETWEEN_TRIES
            )
            return
        except Exception:
            # The database works again, and refuses: perhaps the label was deleted. The
            # next request asks for itself, and raises the error.
            logger.debug("%s has changed", subject, exc_info=True)
        if time.monotonic() - begin > SECONDS_TO_WAIT:
            self._troubles[subject] = _Trouble(time.monotonic())
        else:
            self._troubles.pop(subject, None)
