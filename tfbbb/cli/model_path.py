"""Which SavedModel a user means."""

from pathlib import Path

from tfbbb.cli.errors import CommandError
from tfbbb.export.versions import newest_version


def resolve_model(path: Path) -> Path:
    """Returns the SavedModel at a path, or the highest version under it.

    Raises:
        CommandError: There is neither.
    """
    if (path / "saved_model.pb").is_file():
        return path
    newest = newest_version(path)
    if newest is None:
        reason = "there is no such directory"
        if path.exists():
            reason = "it holds neither a saved_model.pb nor numbered versions"
        raise CommandError(f"{path} is no model: {reason}.")
    return newest
