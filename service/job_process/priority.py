"""Lets predictions have the cores before trainings."""

import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

# A tenth of the share of a process that predicts, and all that no other process uses.
_NICENESS = 10
_AUTOGROUP = Path("/proc/self/autogroup")


def give_way() -> None:
    """Lowers the priority of this process below that of the service.

    Linux may share the cores first among sessions (`autogroup` of sched(7)); there the
    niceness of a process counts only within its session, which has one of its own.
    """
    os.nice(_NICENESS)
    # The session of a shell that starts a trainer by hand keeps its priority.
    if os.getsid(0) == os.getpid() and _AUTOGROUP.exists():
        try:
            _AUTOGROUP.write_text(str(_NICENESS))
        except OSError as error:
            logger.info("could not lower the priority of the session: %s", error)
