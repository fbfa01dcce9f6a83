"""Tasks in this process, in processes of this machine, or on a Ray cluster.

`Executor` is the one interface for work that falls into parts without any order: the
splits of a benchmark, the trials of a search, chains, cross-validation of your own. The
same tasks have the same results with every executor.
"""

from tfbbb.training.executor.executor import Executor, InProcessExecutor
from tfbbb.training.executor.local import LocalExecutor
from tfbbb.training.executor.ray_executor import RayExecutor
from tfbbb.training.executor.task import Task, TaskError

__all__ = [
    "Executor",
    "InProcessExecutor",
    "LocalExecutor",
    "RayExecutor",
    "Task",
    "TaskError",
    "make_executor",
]


def make_executor(
    processes: int | None = None, ray_address: str | None = None
) -> Executor:
    """Returns the executor of two options that commands have.

    Args:
        processes: Number of processes of this machine; None for this process.
        ray_address: The address of a Ray cluster, instead; see `RayExecutor`.

    Raises:
        ValueError: Both are given, or `processes` is not a positive integer.
        ImportError: Ray is asked for and not installed.
        ConnectionError: No cluster answers.
    """
    if ray_address is not None:
        if processes is not None:
            raise ValueError(
                "Tasks run in processes of this machine or on a Ray cluster: give one "
                "of the two. "
                f"Received: processes={processes!r}, ray_address={ray_address!r}"
            )
        return RayExecutor(ray_address)
    return InProcessExecutor() if processes is None else LocalExecutor(processes)
