"""Commands in a process of their own, and what those say that fail."""

import os
import subprocess
import sys

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


def succeeded(result):
    """Returns the result of a command, whose exit code is 0."""
    assert result.exit_code == 0, result.output
    return result


def refusal(result):
    """Returns what a command that failed with exit code 1 wrote as its error."""
    assert result.exit_code == 1, result.output
    return result.stderr


def sentence(result):
    """Returns the error of a command that wrote one line alone."""
    error = refusal(result)
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    return error


def run_commands(*commands, first="", then="", environment=os.environ, **options):
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
