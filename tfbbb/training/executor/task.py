"""A function call that an executor runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """A call of a function, in another process or on another machine.

    The result must depend on the arguments alone: a function that draws random numbers
    gets its seed as an argument. Then every executor returns the same results.

    Attributes:
        key: The name of the task, such as `"energy, split 3"`, which no other task of a
            run has. Kept results are found by it, and count for equal arguments and
            code.
        function: The function. The code of functions of a script or a notebook is
            sent; functions of a module are imported where the task runs.
        arguments: Its keyword arguments, which can be pickled.
    """

    key: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)


class TaskError(RuntimeError):
    """A task has failed, or its process has died too often.

    Attributes:
        key: The key of the task.
    """

    # With a default, so that it can be pickled.
    def __init__(self, message: str, key: str = ""):
        super().__init__(message)
        self.key = key

    @classmethod
    def caused_by(cls, error: Exception, key: str) -> "TaskError":
        """Returns the error of a task that raised `error`."""
        made = cls(f"The task {key!r} failed: {type(error).__name__}: {error}", key)
        made.__cause__ = error
        return made


class LostProcess(Exception):
    """The process of a task has died, and with it the task."""
