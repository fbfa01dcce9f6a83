"""The version of the package, and the commit of its source."""

import os
from functools import cache
from pathlib import Path

__version__ = "0.3.0"

UNKNOWN = "unknown"


@cache
def commit() -> str:
    """Returns the commit of the source, or `unknown`.

    A wheel and an image have it in a file. In a clone git tells it, with `-dirty` if
    files differ from it.
    """
    built = Path(__file__).with_name("commit.txt")
    if built.is_file():
        return built.read_text().strip() or UNKNOWN
    root = Path(__file__).parents[1]
    return git_commit(root) if (root / ".git").exists() else UNKNOWN


def git_commit(root: Path) -> str:
    """Returns the commit of a clone, or `unknown` if git does not tell it."""
    # Imported late: few programs ask.
    import subprocess

    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return done.stdout.strip()
