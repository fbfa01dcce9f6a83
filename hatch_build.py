"""Writes the commit into wheels and source distributions, as `tfbbb/commit.txt`.

It is that of the variable SOURCE_COMMIT, else the one that git tells. Without both
there is no file, and the commit of the package is `unknown`.
"""

import os
import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PLACE = "tfbbb/commit.txt"


class CommitFile(BuildHookInterface):
    """Adds the file to what is built; the source tree stays as it is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(__file__).parent
        # A source distribution has the file, and an editable installation asks git.
        if version == "editable" or (root / _PLACE).exists():
            return
        commit = os.environ.get("SOURCE_COMMIT", "")
        if not commit and (root / ".git").exists():
            module = runpy.run_path(str(root / "tfbbb" / "version.py"))
            found = module["git_commit"](root)
            commit = "" if found == module["UNKNOWN"] else found
        if commit:
            self._directory = tempfile.TemporaryDirectory()
            file = Path(self._directory.name, "commit.txt")
            file.write_text(f"{commit}\n")
            build_data["force_include"][str(file)] = _PLACE
