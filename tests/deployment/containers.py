"""What a container of the service must fit: its settings, and the image."""

import re
from functools import cache
from pathlib import Path

from service.app import create_app
from service.shared.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()

STAGES = re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE)
PORT = int(re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)[-1])
USER = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)[-1]
VOLUMES = set(re.findall(r'"(/[^"]+)"', DOCKERFILE.partition("\nVOLUME ")[2]))


def settings(environment):
    """Returns the settings of an environment, all of which must exist."""
    ours = {name: value for name, value in environment.items() if name[:6] == "TFBBB_"}
    known = {Settings.variable(name) for name in Settings.model_fields}
    assert ours.keys() <= known
    return Settings.from_environment(ours)


@cache
def paths():
    """The paths of the service."""
    return create_app(Settings()).openapi()["paths"]


def answers_without_key(path):
    """Returns whether the service answers GET of a path, and asks for no key."""
    operation = paths().get(path, {}).get("get")
    return operation is not None and "security" not in operation
