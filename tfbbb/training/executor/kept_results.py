"""Results of tasks in a directory, from which an interrupted run goes on."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import cloudpickle

from tfbbb.base.files import flush
from tfbbb.training.executor.code_digest import code_digest
from tfbbb.training.executor.task import Task

_FORMAT = b"tfbbb result 2\n"
_DIGEST_BYTES = 32


class KeptResults:
    """Keeps the results of tasks, one file each.

    A file holds the digest of its content, and the content names its task, so that a
    damaged file, one of another task, or one of other code counts as no result: see
    `tfbbb.executor.code_digest`.

    Args:
        directory: The directory; created if missing. Read only directories that you
            trust: results are pickles, and a pickle can run code.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)

    def read(self, task: Task) -> tuple[bool, Any]:
        """Returns whether there is a result of a task, and the result."""
        try:
            content = self._path(task).read_bytes()
        except FileNotFoundError:
            return False, None
        start = len(_FORMAT) + _DIGEST_BYTES
        digest, body = content[len(_FORMAT) : start], content[start:]
        if not content.startswith(_FORMAT) or digest != hashlib.sha256(body).digest():
            return False, None
        try:
            identity, result = cloudpickle.loads(body)
        except Exception:
            # Of a class that this version does not have, for example.
            return False, None
        return identity == _identity(task), result

    def write(self, task: Task, result: Any) -> None:
        """Writes the result of a task; it is complete on disk, or not there."""
        body = cloudpickle.dumps((_identity(task), result))
        with tempfile.NamedTemporaryFile(
            dir=self._directory, prefix="unfinished-", delete=False
        ) as file:
            file.write(_FORMAT + hashlib.sha256(body).digest() + body)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(self._path(task))
        flush(self._directory)

    def _path(self, task: Task) -> Path:
        name = hashlib.sha256(task.key.encode()).hexdigest()[:32]
        return self._directory / f"{name}.result"


def _identity(task: Task) -> tuple[str, list[str], str]:
    """Returns what the result depends on.

    A task of other arguments or of other code runs again. Functions among the arguments
    count by their code too, because a pickle has only their names.
    """
    functions = (task.function, *filter(callable, task.arguments.values()))
    arguments = cloudpickle.dumps(dict(task.arguments))
    codes = [code_digest(function) for function in functions]
    return task.key, codes, hashlib.sha256(arguments).hexdigest()
