"""Programs that the tests of deployment run, where the machine has them."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def program(name, how):
    """Returns the path of a program, beside this Python or elsewhere."""
    here = Path(sys.executable).parent
    path = shutil.which(name, path=f"{here}:{os.environ['PATH']}")
    if path is None:
        reason = f"there is no {name}: {how}"
        # Where everything must be tested, nothing is left out in silence.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return path
