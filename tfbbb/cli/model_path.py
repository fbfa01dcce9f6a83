"""From a path on the command line to a SavedModel."""

from pathlib import Path

from tfbbb.cli.errors import CommandError
from tfbbb.export.versions import newest_version


def resolve_model(path: Path) -> Path:
    """Returns the path if it is a SavedModel, else the highest version under it.

    Raises:
        CommandError: The path is neither a SavedModel nor a directory of versions.
    """
    if (path / "saved_model.pb").is_file():
        return path
    newest = newest_version(path)
    if newest is None:
        reason = "there is no such directory"
        if path.exists():
            reason = "it holds neither a saved_model.pb nor numbered versions"
        raise CommandError(f"{path} is not a model: {reason}.")
    return newest
