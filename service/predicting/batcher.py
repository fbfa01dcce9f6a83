"""Computes predictions: small ones together, large ones block by block."""

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from service.predicting.pace import Pace
from service.shared.errors import DeadlineExceeded, Overloaded
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_QUICK_SECONDS = 0.003
# While the event loop is overloaded, so long may a request take, but so few are always
# taken, because one of them may take long for itself.
_CROWDED_SECONDS, _LEAST_TAKEN = 0.2, 16
_FIRST_SECONDS_PER_REQUEST, _GAIN = 3e-4, 0.01
# So many requests begin before the event loop attends to others, which may be refused.
_BEGUN_TOGETHER = 16


@dataclass(eq=False)
class Task:
    """A request to compute: with others of its key and in blocks, if it has a key."""

    subject: Any
    key: Hashable | None
    rows: int
    work: float
    # Of `time.monotonic`; the client is answered then in any case.
    deadline: float
    pace: Pace
    results: list[Any] = field(default_factory=list)
    done: int = 0
    is_large: bool = False
    is_quick: bool = False
    is_over: bool = False
    # The seconds that those who come later have to wait for it.
    seconds: float = 0.0
    answer: "asyncio.Future[Any]" = field(init=False)


class Portion(NamedTuple):
    """The rows of a task that are computed next."""

    task: Task
    rows: slice

    @property
    def work(self) -> float:
        """The work of these rows."""
        rows: int = self.rows.stop - self.rows.start
        return self.task.work * rows / self.task.rows


class _Waiting:
    """Tasks that wait, by their keys: a key that was asked for first comes first."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, deque[Task]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __contains__(self, key: Hashable | None) -> bool:
        return key in self._by_key

    def push(self, task: Task) -> None:
        """Adds a task."""
        if task.key in self._by_key:
            self._by_key[task.key].append(task)
        else:
            self._by_key[task.key or task] = deque([task])

    def take(self, seconds: float = math.inf) -> list[Portion]:
        """Removes the tasks of one key, up to the work of a block, or of some seconds.

        The work takes at least as long as what each batch takes in any case.
        """
        key, waiting = next(iter(self._by_key.items()))
        batch: list[Portion] = []
        pace = waiting[0].pace
        seconds = max(seconds - pace.fixed, pace.fixed)
        room = min(pace.block_work, seconds / pace.per_work)
        while waiting and (not batch or waiting[0].work <= room):
            task = waiting.popleft()
            if not task.is_over:
                batch.append(Portion(task, slice(0, task.rows)))
                room -= task.work
        del self._by_key[key]
        if waiting:  # Others come first.
            self._by_key[key] = waiting
        return batch


class Batcher:
    """A bounded queue of tasks, which are computed in batches.

    Waiting tasks that have the same key are joined, up to the work of one block. The
    event loop computes tasks of a few milliseconds, for which a thread would wait for
    the interpreter as long, and threads compute all others: a task that is larger than
    a block takes turns with smaller ones. Whether a request is taken is decided here.
    `compute` computes the portions of a batch, and `finish` makes the answer of a
    subject whose rows are computed.
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Portion]], Sequence[Any]],
        finish: Callable[[Any, Sequence[Any]], Any],
        settings: Settings,
        note_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        self._note_refusal = note_refusal
        self._compute = compute
        self._finish = finish
        self._settings = settings
        # Predictions whose headers have arrived, and those that are read or answered.
        self._arrived = 0
        # How many more may begin in this turn of the event loop, and those that wait.
        self._may_begin = _BEGUN_TOGETHER
        self._beginning: deque[asyncio.Future[None]] = deque()
        self._requests = 0
        self._bytes = 0
        # Processor time of the event loop between two answers, while it is crowded.
        self._seconds_per_request = _FIRST_SECONDS_PER_REQUEST
        self._answered_at: float | None = None
        self._changed = threading.Condition()
        # Those of the event loop, those of the threads, and those that need turns.
        self._quick = _Waiting()
        self._small = _Waiting()
        self._large: deque[Task] = deque()
        self._took_large = False
        # Until all tasks are computed, by whether they are large.
        self._seconds = [0.0, 0.0]

    def start(self) -> None:
        """Starts the threads."""
        for place in range(self._settings.threads):
            name = f"computing-{place}"
            threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def num_waiting(self) -> int:
        """The number of requests that have no answer yet."""
        return max(self._arrived, self._requests)

    @contextmanager
    def admitted(self, size: int) -> Iterator[Callable[[int], None]]:
        """Counts a request until the block ends, or raises `Overloaded` at once.

        The block gets a function that takes the size that was found: a compressed body
        is larger than its client declares.
        """

        def recount(found: int) -> None:
            nonlocal size
            declared, size = size, 0
            self._bytes -= declared
            if found > declared:
                self._check(found, self._requests - 1)
            self._bytes += found
            size = found

        self._check(size, self._requests)
        self._requests += 1
        self._bytes += size
        try:
            yield recount
        finally:
            self._requests -= 1
            self._bytes -= size

    def _check(self, size: int, requests: int) -> None:
        if refusal := self._refusal(size, requests):
            self._note_refusal()
            raise refusal

    def arrive(self) -> Overloaded | None:
        """Counts a request until it leaves; returns why, if it is refused instead."""
        refusal = self._refusal(0, self.num_waiting)
        if refusal is None:
            self._arrived += 1
        else:
            self._note_refusal()
        return refusal

    def leave(self) -> None:
        """Notes that a request that has arrived is answered, or its client is gone."""
        self._arrived -= 1

    async def begin(self) -> None:
        """Waits for the turn of the event loop in which a request begins.

        The loop reads what hundreds of connections have sent in one turn. If all of
        these requests began in the next one, nobody would be refused meanwhile.
        """
        if not self._may_begin:
            turn = asyncio.get_running_loop().create_future()
            self._beginning.append(turn)
            await turn
        elif self._may_begin == _BEGUN_TOGETHER:
            asyncio.get_running_loop().call_soon(self._next_turn)
            self._may_begin -= 1
        else:
            self._may_begin -= 1

    def _next_turn(self) -> None:
        self._may_begin = _BEGUN_TOGETHER
        while self._beginning and self._may_begin:
            turn = self._beginning.popleft()
            if not turn.done():
                turn.set_result(None)
                self._may_begin -= 1
        if self._may_begin < _BEGUN_TOGETHER:
            asyncio.get_running_loop().call_soon(self._next_turn)

    async def answer(self, task: Task) -> Any:
        """Returns the answer of a task by its deadline; drops it if cancelled."""
        loop = asyncio.get_running_loop()
        task.answer = loop.create_future()
        crowd = self.num_waiting
        self._submit(task)
        expiring = loop.call_at(task.deadline, _expire, task.answer)
        try:
            return await task.answer
        finally:
            expiring.cancel()
            self._drop(task)
            if task.is_quick:
                self._observe_answer(is_crowded=crowd >= _LEAST_TAKEN)

    def _observe_answer(self, is_crowded: bool) -> None:
        """Learns what an answer costs; a stall takes no processor time."""
        now, before = time.thread_time(), self._answered_at
        if is_crowded and before is not None:
            took = now - before
            self._seconds_per_request += _GAIN * (took - self._seconds_per_request)
        self._answered_at = now

    def _refusal(self, size: int, waiting: int) -> Overloaded | None:
        """Returns why a request is refused if so many wait; raising takes longer."""
        settings = self._settings
        if waiting >= settings.max_waiting_requests:
            return Overloaded(
                f"{waiting} predictions are waiting, the most that may "
                "(TFBBB_MAX_WAITING_REQUESTS); retry after the seconds of "
                "`Retry-After`."
            )
        seconds = (waiting + 1) * self._seconds_per_request
        if waiting >= _LEAST_TAKEN and seconds > _CROWDED_SECONDS:
            return Overloaded(
                f"The service is overloaded: {waiting} predictions are being "
                f"answered, and one more would take {seconds:.1f} s; retry after the "
                "seconds of `Retry-After`."
            )
        # A body within the limit of bodies is taken if no other is waiting.
        if 0 < self._bytes > settings.max_waiting_bytes - size:
            return Overloaded(
                f"Bodies of {self._bytes} bytes are waiting, and at most "
                f"{settings.max_waiting_bytes} may (TFBBB_MAX_WAITING_BYTES); retry "
                "after the seconds of `Retry-After`."
            )
        return self._late_turn(self._seconds_until_turn(is_large=False))

    def _seconds_until_turn(self, is_large: bool) -> float:
        small, large = self._seconds
        # The turns of large tasks take as long as those of small ones.
        ahead = small + (large if is_large else min(small, large))
        return ahead / self._settings.threads

    def _late_turn(self, seconds: float) -> Overloaded | None:
        most = self._settings.max_queue_seconds
        if seconds <= most:
            return None
        return Overloaded(
            f"A prediction would wait {seconds:.1f} s for its turn, more than "
            f"{most:g} s (TFBBB_MAX_QUEUE_SECONDS); retry after the seconds of "
            "`Retry-After`.",
            seconds - most,
        )

    def _submit(self, task: Task) -> None:
        left = task.deadline - time.monotonic()
        if left <= 0.0:
            raise _deadline_passed()
        block_work = task.pace.block_work
        task.is_large = task.work > block_work
        blocks = task.work / block_work if task.is_large and task.key else 1.0
        task.seconds = blocks * task.pace.seconds(task.work / blocks)
        task.is_quick = task.seconds <= _QUICK_SECONDS
        if task.is_quick:
            is_first = not self._quick
            self._quick.push(task)
            if is_first and self.num_waiting == 1:  # No other request has arrived.
                self._run_quick()
            elif is_first:
                asyncio.get_running_loop().call_soon(self._run_quick)
            return
        with self._changed:
            turn = self._seconds_until_turn(task.is_large)
            # What comes first is tried, so that a wrong estimate corrects itself. What
            # has been computed leaves 0 up to rounding.
            if turn > 1e-9:
                refusal = self._late_turn(turn)
                if refusal is not None:
                    raise refusal
                if turn + task.seconds > left:
                    raise DeadlineExceeded(
                        "The prediction would take "
                        f"{1e3 * (turn + task.seconds):.0f} ms, but its deadline is in "
                        f"{1e3 * left:.0f} ms; retry after the seconds of "
                        "`Retry-After`, send fewer rows, or allow more time "
                        "(`parameters.deadline_ms`).",
                        turn,
                    )
            if task.is_large:
                self._large.append(task)
            else:
                if task.key in self._small:  # It is joined with others.
                    task.seconds -= task.pace.fixed
                self._small.push(task)
            self._seconds[task.is_large] += task.seconds
            self._changed.notify()

    def _drop(self, task: Task) -> None:
        """Notes that nobody waits for a task any more."""
        if task.is_quick:
            task.is_over = True
            return
        with self._changed:
            task.is_over = True
            self._pass(task, task.seconds)

    def _pass(self, task: Task, seconds: float) -> None:
        """Takes the seconds of what is computed from those that others wait for."""
        seconds = min(seconds, task.seconds)
        task.seconds -= seconds
        self._seconds[task.is_large] = max(0.0, self._seconds[task.is_large] - seconds)

    def _run_quick(self) -> None:
        """Computes a batch on the event loop, which then attends to others."""
        outcomes = self._computed(self._quick.take(_QUICK_SECONDS))
        if self._quick:
            asyncio.get_running_loop().call_soon(self._run_quick)
        _answer(outcomes)

    def _run(self) -> None:
        while True:
            try:
                # No variable, which would keep a model in memory until the next batch.
                _deliver(self._computed(self._next_batch()))
            except Exception:
                logger.exception("a batch failed")

    def _next_batch(self) -> list[Portion]:
        """Waits for tasks, and removes what is computed next from the queue."""
        with self._changed:
            while not (self._small or self._large):
                self._changed.wait()
            self._took_large = not self._small or bool(
                self._large and not self._took_large
            )
            if self._took_large:
                task = self._large.popleft()
                return [] if task.is_over else [_next_portion(task)]
            return self._small.take()

    def _computed(self, batch: Sequence[Portion]) -> list[tuple[Task, Any]]:
        """Computes a batch, or else each task alone; returns what is finished."""
        if not batch:
            return []
        begin = time.perf_counter()
        try:
            results = self._compute(batch)
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0].task, error)]
            return [pair for portion in batch for pair in self._computed([portion])]
        pace, seconds = batch[0].task.pace, time.perf_counter() - begin
        pace.observe(sum(portion.work for portion in batch), seconds)
        finished: list[tuple[Task, Any]] = []
        for (task, rows), result in zip(batch, results, strict=True):
            task.results.append(result)
            if rows.stop < task.rows:
                self._continue(task, seconds)
            elif not task.is_over:
                finished.append((task, self._finished(task)))
        return finished

    def _continue(self, task: Task, seconds: float) -> None:
        """Puts a large task back, before those that came later."""
        with self._changed:
            if not task.is_over:
                self._pass(task, seconds)
                self._large.appendleft(task)
                self._changed.notify()

    def _finished(self, task: Task) -> Any:
        try:
            return self._finish(task.subject, task.results)
        except Exception as error:
            return error


def _next_portion(task: Task) -> Portion:
    begin = task.done
    rows = task.rows - begin
    if task.key is not None:
        rows = min(rows, max(1, int(task.rows * task.pace.block_work / task.work)))
    task.done = begin + rows
    return Portion(task, slice(begin, task.done))


def _deliver(outcomes: Sequence[tuple[Task, Any]]) -> None:
    """Answers tasks from a thread; their event loop wakes up once for all of them."""
    if outcomes:
        with suppress(RuntimeError):  # The event loop is closed at shutdown.
            outcomes[0][0].answer.get_loop().call_soon_threadsafe(_answer, outcomes)


def _answer(outcomes: Sequence[tuple[Task, Any]]) -> None:
    for task, outcome in outcomes:
        if task.answer.done():
            continue
        if isinstance(outcome, Exception):
            task.answer.set_exception(outcome)
        else:
            task.answer.set_result(outcome)


def _expire(answer: "asyncio.Future[Any]") -> None:
    if not answer.done():
        answer.set_exception(_deadline_passed())


def _deadline_passed() -> DeadlineExceeded:
    return DeadlineExceeded(
        "The deadline of the request passed before its answer; allow more time "
        "(`parameters.deadline_ms`), or retry when less work is waiting."
    )
