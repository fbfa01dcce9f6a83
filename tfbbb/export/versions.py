"""The versions of a model on disk, in TensorFlow Serving's layout: NAME/VERSION."""

import os
from pathlib import Path


def version_number(path: Path) -> int | None:
    """Returns the version that a directory's name says, if it is one.

    Not "007", which would be a second name of version 7.
    """
    name = path.name
    return int(name) if name.isdecimal() and name == str(int(name)) else None


def versions_under(root: str | os.PathLike[str]) -> list[Path]:
    """Returns the SavedModels of the versions under `root`, the highest first."""
    numbered = {
        number: graph.parent
        for graph in Path(root).glob("*/saved_model.pb")
        if (number := version_number(graph.parent)) is not None
    }
    return [numbered[number] for number in sorted(numbered, reverse=True)]


def newest_version(root: str | os.PathLike[str]) -> Path | None:
    """Returns the SavedModel of the highest version under `root`, if there is any."""
    return next(iter(versions_under(root)), None)


def next_version(root: str | os.PathLike[str]) -> Path:
    """Returns the directory of the next version under `root`: 1, or one above the last.

    Whatever has a version's name counts, whether there is a SavedModel in it or not.

    Example:

    >>> next_version("nothing/here/yet").name
    '1'
    """
    numbers = [version_number(entry) or 0 for entry in Path(root).glob("*")]
    return Path(root) / str(max(numbers, default=0) + 1)
