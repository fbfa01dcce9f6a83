"""One interface for tasks of this process, of other processes and of machines."""

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, Self

from tfbbb.training.executor.kept_results import KeptResults
from tfbbb.training.executor.task import (
    LostProcess,
    Task,
    TaskError,
)
from tfbbb.training.executor.task_bar import TaskBar

_MOST_DEATHS = 3


class Executor:
    """Runs tasks, as many at a time as it has places, and returns their results.

    As a context manager it keeps its processes from one `run` to the next; without, a
    run ends them. A subclass says where tasks run: `start`, `next`, `stop` and, for
    what lasts from task to task, `open` and `close`.
    """

    def __init__(self) -> None:
        self._entered = 0

    def run(
        self,
        tasks: Sequence[Task],
        *,
        directory: str | os.PathLike[str] | None = None,
        progress: str | None = None,
        finished: Callable[[Task, Any], object] = lambda task, result: None,
    ) -> list[Any]:
        """Runs tasks; the first error ends the run and all other tasks.

        A task whose process dies runs again, three times at most.

        Args:
            tasks: The tasks, with keys that differ.
            directory: A directory that keeps each result as soon as it is there, so
                that the same call after an interruption runs only the missing tasks.
                None keeps nothing.
            progress: What the tasks are, such as `"splits"`, for a progress bar on
                stderr; None for no bar.
            finished: Called with each task and its result, in the order in which they
                finish.

        Returns:
            The results, in the order of the tasks.

        Raises:
            ValueError: Two tasks have the same key.
            TaskError: A task raised an error, which is the cause, or its process died
                three times.
        """
        _check_keys(tasks)
        kept = None if directory is None else KeptResults(directory)
        results: dict[str, Any] = {}
        with self, TaskBar(progress, len(tasks)) as bar:

            def finish(task: Task, result: Any) -> None:
                results[task.key] = result
                bar.advance(task.key)
                finished(task, result)

            waiting = deque[Task]()
            for task in tasks:
                found, result = (False, None) if kept is None else kept.read(task)
                if found:
                    finish(task, result)
                else:
                    waiting.append(task)
            # An error ends the other tasks at once.
            with closing(self._results(waiting)) as found_results:
                for task, result in found_results:
                    if kept is not None:
                        kept.write(task, result)
                    finish(task, result)
        return [results[task.key] for task in tasks]

    @property
    def places(self) -> int:
        """Number of tasks that run at the same time."""
        return 1

    def start(self, task: Task) -> None:
        """Starts a task, without waiting for it; called while a place is free."""
        raise NotImplementedError

    def next(self) -> tuple[str, Any]:
        """Waits for a started task; returns its key and its result.

        The result is a `LostProcess` if its process has died, and a `TaskError` if the
        task raised an error.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Ends the started tasks."""

    def open(self) -> None:
        """Prepares for tasks."""

    def close(self) -> None:
        """Ends the processes; the next task starts new ones."""
        self.stop()

    def __enter__(self) -> Self:
        if not self._entered:
            self.open()
        self._entered += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered -= 1
        if not self._entered:
            self.close()

    def _results(self, waiting: deque[Task]) -> Generator[tuple[Task, Any], None, None]:
        """Yields tasks with their results, in the order in which they finish."""
        running: dict[str, Task] = {}
        deaths = Counter[str]()
        try:
            while waiting or running:
                while waiting and len(running) < self.places:
                    task = waiting.popleft()
                    running[task.key] = task
                    self.start(task)
                key, result = self.next()
                task = running.pop(key)
                if isinstance(result, TaskError):
                    raise result from result.__cause__
                if not isinstance(result, LostProcess):
                    yield task, result
                    continue
                deaths[key] += 1
                if deaths[key] == _MOST_DEATHS:
                    raise TaskError(
                        f"The process of the task {key!r} died {_MOST_DEATHS} times, "
                        "which a lack of memory can cause: run fewer tasks at a time. "
                        f"Received: {result}",
                        key,
                    )
                waiting.appendleft(task)
        finally:
            self.stop()


class InProcessExecutor(Executor):
    """Runs tasks in this process, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._task: Task | None = None

    def start(self, task: Task) -> None:
        self._task = task

    def next(self) -> tuple[str, Any]:
        task = self._task
        assert task is not None
        try:
            return task.key, task.function(**task.arguments)
        except Exception as error:
            return task.key, TaskError.caused_by(error, task.key)


def _check_keys(tasks: Sequence[Task]) -> None:
    ((key, count),) = Counter(task.key for task in tasks).most_common(1) or [("", 0)]
    if count > 1:
        raise ValueError(
            "Each task needs a key of its own, by which its result is kept. "
            f"Received: {count} tasks with the key {key!r}"
        )
