"""The worker of a partition: the object that lives with its rows."""

from typing import TYPE_CHECKING

import numpy as np

from tfbbb.lab.distributed.factor_server import Task, Update
from tfbbb.lab.distributed.partition import Partition
from tfbbb.lab.distributed.rows import (
    Rows,
    Source,
    read_rows,
)

if TYPE_CHECKING:
    from tfbbb.lab.distributed.problems import Problem


class PartitionWorker:
    """Reads the rows of a partition and answers tasks.

    Args:
        partition: Index of the partition.
        source: The rows, or a function that returns them.
    """

    def __init__(self, partition: int, source: Source):
        self._index = partition
        self._source = source
        self._rows: Rows | None = None
        self._partition: Partition | None = None

    def load(self) -> int:
        """Reads the rows; returns their number."""
        self._rows = read_rows(self._source, self._index)
        return len(self._rows[1])

    def targets(self) -> np.ndarray:
        """Returns the targets of all rows."""
        assert self._rows is not None, "`load` comes first"
        targets: np.ndarray = self._rows[1]
        return targets

    def prepare(self, problem: "Problem") -> None:
        """Takes the model, and gives it the rows."""
        assert self._rows is not None, "`load` comes first"
        # The problem copies the rows. Dropping the originals saves their memory.
        rows, self._rows = self._rows, None
        self._partition = Partition(problem.local_rows(*rows, self._index))

    def update(self, task: Task) -> Update:
        """Returns the change of the factor, as `Partition.update`."""
        assert self._partition is not None, "`prepare` comes first"
        return self._partition.update(task)
