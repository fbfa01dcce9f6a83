"""The limits of the sandbox."""

import math
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from service.shared.sandbox import Limits


def apply_limits(limits: Limits, *, most_written_bytes: int = 0) -> "ProcessorTime":
    """Limits the memory, time and files that this process uses from now on."""
    for kind, most in (
        (resource.RLIMIT_AS, _address_space() + limits.memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, most_written_bytes),
    ):
        _limit(kind, most)
    return ProcessorTime(limits.seconds)


class ProcessorTime:
    """The processor time that this process may use."""

    def __init__(self, seconds: float) -> None:
        self._end = time.process_time() + seconds
        self._apply()

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Does not count the time of the block."""
        begin = time.process_time()
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
        yield
        self._end += time.process_time() - begin
        self._apply()

    def _apply(self) -> None:
        # At the soft limit of processor time the process dies by SIGXCPU.
        _limit(resource.RLIMIT_CPU, math.ceil(self._end))


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (soft, hard))


def _address_space() -> int:
    pages = Path("/proc/self/statm").read_text().split()[0]
    return int(pages) * resource.getpagesize()


def hide_pandas() -> None:
    """Hides pandas, whose import by Arrow takes up to a second."""
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)
