"""The limits of the sandbox."""

import math
import resource
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from service.shared.sandbox import Limits


def apply_limits(limits: Limits, *, most_written_bytes: int = 0) -> None:
    """Limits the memory, time and files that this process uses from now on."""
    allow_seconds(time.process_time() + limits.seconds)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    for kind, most in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + limits.memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, most_written_bytes),
    ):
        _limit(kind, most)


def allow_seconds(seconds: float) -> None:
    """Lets this process use so much processor time in all; then it dies by SIGXCPU."""
    _limit(resource.RLIMIT_CPU, math.ceil(seconds))


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (soft, hard))


def hide_pandas() -> None:
    """Hides pandas, whose import by Arrow takes up to a second."""
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)
