"""Commands in a process of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_PROGRAM = """
import sys
{first}
from tfbbb.__main__ import main
codes = [0]
for arguments in {commands!r}:
    sys.argv = ["tfbbb", *arguments]
    try:
        main()
    except SystemExit as end:
        codes.append(end.code or 0)
{then}
sys.exit(max(codes))
"""


def run_commands(
    *commands: list[Any],
    first: str = "",
    then: str = "",
    environment: Mapping[str, str] = os.environ,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Runs commands, one after the other, in one process of 80 columns.

    Its exit code is the greatest of them; `first` and `then` are lines of Python.
    """
    given = [[str(word) for word in command] for command in commands]
    program = _PROGRAM.format(first=first, commands=given, then=then)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"COLUMNS": "80", **environment},
        **options,
    )
