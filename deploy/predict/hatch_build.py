"""The metadata of `tfbbb-predict`: that of `tfbbb`, with fewer dependencies."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_SAME = ("classifiers", "keywords", "license", "requires-python", "scripts")


class PredictMetadata(MetadataHookInterface):
    """Takes every field from the `pyproject.toml` of `tfbbb`."""

    def update(self, metadata: dict[str, Any]) -> None:
        path = Path(self.root).parents[1] / "pyproject.toml"
        project = tomllib.loads(path.read_text())["project"]
        metadata |= {field: project[field] for field in _SAME}
        names = {_name(text): text for text in project["dependencies"]}
        if unknown := set(self.config["without"]) - set(names):
            raise ValueError(
                "`without` names dependencies of tfbbb. "
                f"Received: {', '.join(sorted(unknown))}"
            )
        metadata["dependencies"] = [
            text for name, text in names.items() if name not in self.config["without"]
        ]
        extras = project["optional-dependencies"]
        metadata["optional-dependencies"] = {
            name: extras[name] for name in self.config["extras"]
        }


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
