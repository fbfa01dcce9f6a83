"""The limits of a process that reads a file, which may be hostile."""

import math
import resource
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

from service.shared.inspection import Limits


def apply_limits(limits: Limits, *, most_written_bytes: int = 0) -> None:
    """Limits the address space, the processor time and the files of this process."""
    # The processor time of the imports does not count.
    seconds = time.process_time() + limits.seconds
    for kind, most in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, math.ceil(seconds)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, most_written_bytes),
    ):
        hard = resource.getrlimit(kind)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # At the soft limit of processor time the process dies by SIGXCPU.
        resource.setrlimit(kind, (soft, hard))


def hide_pandas() -> None:
    """Makes pandas look as if it were not installed.

    With its first array for NumPy, Arrow imports pandas where it is there, which takes
    up to a second of a process that has no use for it.
    """
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)
