"""Batches predictions and computes the most urgent first."""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from service.model_process.speed import Speed
from service.shared.errors import DeadlineExceeded, Overloaded

logger = logging.getLogger(__name__)

T = TypeVar("T")
Result = TypeVar("Result")

# A block is at most this much work, and takes about this long: others wait no longer
# for their turn.
_BLOCK_WORK = 500_000
_BLOCK_SECONDS = 0.1


@dataclass(eq=False)
class Task(Generic[T, Result]):
    """A prediction that waits for its turn, or for the turn of its next rows.

    Args:
        subject: What is computed.
        key: Tasks with the same key may be computed together, and in blocks of rows;
            None for a task that is computed alone and whole.
        rows: Number of rows.
        work: The work of all rows.
        deadline: Time of `time.monotonic` after which the answer is of no use.
        waits_anew: Whether each block queues behind the tasks that came meanwhile,
            because the client named no deadline.
        speed: How long tasks of this kind take.
        finish: Takes the results of all blocks, or the error.
        has_substitute: Whether a smaller task is submitted if this one is too late.
            Else an idle scheduler tries it although it seems too late.
    """

    subject: T
    key: Hashable | None
    rows: int
    work: int
    deadline: float
    waits_anew: bool
    speed: Speed
    finish: Callable[[Sequence[Result] | Exception], None]
    has_substitute: bool = False
    done: int = 0
    results: list[Result] = field(default_factory=list)
    # Set once, in the lock of the scheduler: by `cancel`, or before `finish` is called.
    has_ended: bool = False

    @property
    def is_separable(self) -> bool:
        """Whether rows may be computed with others, or in blocks."""
        return self.key is not None

    @property
    def work_left(self) -> float:
        """The work of the rows that were not computed yet."""
        return self.work * (1 - self.done / self.rows)

    @property
    def seconds_left(self) -> float:
        """How long the rest should take alone."""
        blocks = (
            max(1.0, self.work_left / self.block_work) if self.is_separable else 1.0
        )
        return blocks * self.speed.seconds(self.work_left / blocks)

    def next_rows(self, most_work: float) -> int:
        """Returns how many rows are next, within some work."""
        left = self.rows - self.done
        if not self.is_separable:
            return left
        return max(0, min(left, int(min(most_work, self.block_work) / self._per_row)))

    def first_rows(self) -> int:
        """Returns how many rows are next in a batch that is empty."""
        return max(1, self.next_rows(_BLOCK_WORK))

    @property
    def _per_row(self) -> float:
        return self.work / self.rows

    @property
    def block_work(self) -> float:
        """The most work of a block."""
        within = self.speed.work_within(_BLOCK_SECONDS)
        return max(1.0, min(float(_BLOCK_WORK), within))


@dataclass(frozen=True)
class Portion(Generic[T, Result]):
    """The rows of a task that are computed next."""

    task: Task[T, Result]
    rows: slice

    @property
    def work(self) -> float:
        """The work of these rows."""
        rows: int = self.rows.stop - self.rows.start
        return self.task.work * rows / self.task.rows


Batch = list[Portion[T, Result]]
_Entry = tuple[float, int, Task[T, Result]]


class Scheduler(Generic[T, Result]):
    """A bounded queue of tasks, which threads compute in batches.

    A thread takes the task with the earliest deadline, and joins waiting tasks with the
    same key up to the work of one block. It never waits for more tasks. A task that is
    larger is computed block by block, and others take their turns between blocks.
    """

    def __init__(
        self,
        compute: Callable[[Batch[T, Result]], Sequence[Result]],
        max_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        work_done: Callable[[Portion[T, Result], Result], float] = lambda portion, _: (
            portion.work
        ),
    ) -> None:
        self._compute = compute
        self._work_done = work_done
        self._max_seconds = max_seconds
        self._clock = clock
        self._waiting: list[_Entry[T, Result]] = []
        self._order = itertools.count()
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # Tasks of clients that named a deadline, at which they are answered.
        self._due: set[Task[T, Result]] = set()
        self._due_changed = threading.Condition(lock)
        # When each batch that is being computed should be ready.
        self._running: dict[int, float] = {}

    def start(self, threads: int) -> None:
        """Starts threads that compute."""
        for place in range(threads):
            name = f"computing-{place}"
            threading.Thread(target=self._run, name=name, daemon=True).start()
        threading.Thread(target=self._expire, name="deadlines", daemon=True).start()

    def submit(self, task: Task[T, Result]) -> None:
        """Queues a task; another thread calls its `finish`."""
        with self._changed:
            now = self._clock()
            if task.deadline <= now:
                raise _deadline_passed()
            self._check_load(task, now)
            self._push(task, task.deadline)
            self._changed.notify()
            if not task.waits_anew:
                self._due.add(task)
                self._due_changed.notify()

    def cancel(self, task: Task[T, Result]) -> float:
        """Drops a task; its `finish` is not called, unless it was due before."""
        with self._changed:
            if task.has_ended:
                return 0.0
            self._end(task)
            self._waiting = [entry for entry in self._waiting if entry[2] is not task]
            heapq.heapify(self._waiting)
            return task.work_left

    def run_once(self) -> bool:
        """Computes the next batch; returns whether there was one."""
        with self._changed:
            batch, late = self._take()
            if batch:
                self._running[id(batch)] = self._clock() + _seconds(batch)
        for task in late:
            self._finish(task, _deadline_passed())
        if not batch:
            return bool(late)
        try:
            finished = self._compute_batch(batch)
        finally:
            with self._changed:
                self._running.pop(id(batch), None)
        for task, outcome in finished:
            self._finish(task, outcome)
        return True

    def is_idle(self) -> bool:
        """Returns whether no task waits or is computed."""
        with self._changed:
            return not self._waiting and not self._running

    def num_waiting(self) -> int:
        """Returns the number of tasks that wait."""
        return len(self._waiting)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
            try:
                self.run_once()
            except Exception:
                logger.exception("a batch failed")

    def _expire(self) -> None:
        """Answers tasks at their deadlines, also those that are being computed."""
        while True:
            with self._changed:
                first = min((task.deadline for task in self._due), default=None)
                now = self._clock()
                if first is None or first > now:
                    self._due_changed.wait(None if first is None else first - now)
                    continue
                late = {task for task in self._due if task.deadline <= now}
                self._waiting = [e for e in self._waiting if e[2] not in late]
                heapq.heapify(self._waiting)
            for task in late:
                self._finish(task, _deadline_passed())

    def _end(self, task: Task[T, Result]) -> None:
        """Notes that nobody waits for a task any more."""
        task.has_ended = True
        self._due.discard(task)

    def _check_load(self, task: Task[T, Result], now: float) -> None:
        if not (self._waiting or self._running or task.has_substitute):
            # So that a wrong estimate corrects itself.
            return
        # A task of one block waits for at most one block of each larger task.
        whole = task.seconds_left > 2 * _BLOCK_SECONDS
        everything = self._backlog(self._tasks(), now, whole)
        if everything > self._max_seconds:
            raise Overloaded(
                f"A prediction would wait {everything:.1f} s for its turn, more than "
                f"{self._max_seconds:g} s (TFBBB_MAX_QUEUE_SECONDS); retry after the "
                "seconds of `Retry-After`.",
                everything - self._max_seconds,
            )
        if now + everything + task.seconds_left <= task.deadline:
            return  # Whichever of them come before.
        before = [other for order, _, other in self._waiting if order <= task.deadline]
        turn = self._backlog(before, now, whole)
        wait = turn + task.seconds_left
        if now + wait > task.deadline:
            raise DeadlineExceeded(
                f"The prediction would take {1e3 * wait:.0f} ms, but its deadline is "
                f"in {1e3 * (task.deadline - now):.0f} ms; retry after the seconds of "
                "`Retry-After`, send fewer rows, or allow more time "
                "(`parameters.deadline_ms`).",
                everything,
                task.deadline - now - turn,
            )

    def _tasks(self) -> Iterable[Task[T, Result]]:
        return (task for _, _, task in self._waiting)

    def _backlog(
        self, tasks: Iterable[Task[T, Result]], now: float, whole: bool
    ) -> float:
        """Returns how long batches that are running, and then tasks, should take."""
        seconds = [max(0.0, end - now) for end in self._running.values()]
        running = min(seconds, default=0.0)
        together: dict[Hashable, tuple[Task[T, Result], float]] = {}
        for task in tasks:
            group = task if task.key is None else task.key
            first, work = together.get(group, (task, 0.0))
            left = task.work_left
            if task.waits_anew and not whole:
                left = min(left, task.block_work)
            together[group] = (first, work + left)
        total = 0.0
        for task, work in together.values():
            batches = max(1.0, work / task.block_work) if task.is_separable else 1.0
            total += batches * task.speed.seconds(work / batches)
        return running + total

    def _push(self, task: Task[T, Result], order: float) -> None:
        heapq.heappush(self._waiting, (order, next(self._order), task))

    def _take(self) -> tuple[Batch[T, Result], list[Task[T, Result]]]:
        """Removes the next portions from the queue, and tasks that are late."""
        now = self._clock()
        late = [task for task in self._tasks() if task.deadline <= now]
        if late:
            self._waiting = [e for e in self._waiting if e[2].deadline > now]
            heapq.heapify(self._waiting)
        if not self._waiting:
            return [], late
        first = heapq.heappop(self._waiting)[2]
        batch = [self._portion(first, first.first_rows())]
        if first.key is not None:
            batch += self._join(first.key, first.block_work - batch[0].work)
        return batch, late

    def _join(self, key: Hashable, most_work: float) -> Batch[T, Result]:
        """Removes the most urgent tasks with a key from the queue, up to some work."""
        joined: Batch[T, Result] = []
        others = []
        for entry in sorted(self._waiting):
            task = entry[2]
            rows = task.next_rows(most_work) if task.key == key else 0
            if rows and task.done + rows == task.rows:
                joined.append(self._portion(task, rows))
                most_work -= joined[-1].work
            else:
                others.append(entry)
        self._waiting = others  # A sorted list is a heap.
        return joined

    @staticmethod
    def _portion(task: Task[T, Result], rows: int) -> Portion[T, Result]:
        begin = task.done
        task.done += rows
        return Portion(task, slice(begin, task.done))

    def _compute_batch(
        self, batch: Batch[T, Result]
    ) -> list[tuple[Task[T, Result], Sequence[Result] | Exception]]:
        """Computes a batch; returns the tasks that are finished.

        If it fails, each task is computed alone, so that a task fails only by itself.
        """
        begin = self._clock()
        try:
            results = self._compute(batch)
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0].task, error)]
            return [
                pair for portion in batch for pair in self._compute_batch([portion])
            ]
        done = sum(map(self._work_done, batch, results))
        batch[0].task.speed.observe(done, self._clock() - begin)
        finished: list[tuple[Task[T, Result], Sequence[Result] | Exception]] = []
        for portion, result in zip(batch, results, strict=True):
            task = portion.task
            task.results.append(result)
            if task.done == task.rows:
                finished.append((task, task.results))
            else:
                self._requeue(task)
        return finished

    def _requeue(self, task: Task[T, Result]) -> None:
        with self._changed:
            if not task.has_ended:
                order = task.deadline
                if task.waits_anew:
                    order = max([order, *(other for other, _, _ in self._waiting)])
                self._push(task, order)
                self._changed.notify()

    def _finish(
        self, task: Task[T, Result], outcome: Sequence[Result] | Exception
    ) -> None:
        with self._changed:
            if task.has_ended:
                return
            self._end(task)
        try:
            task.finish(outcome)
        except Exception:
            logger.exception("a result could not be delivered")


def _work(batch: Batch[T, Result]) -> float:
    return sum(portion.work for portion in batch)


def _seconds(batch: Batch[T, Result]) -> float:
    return batch[0].task.speed.seconds(_work(batch))


def _deadline_passed() -> DeadlineExceeded:
    return DeadlineExceeded(
        "The deadline of the request passed before its answer; allow more time "
        "(`parameters.deadline_ms`), or retry when less work is waiting."
    )
