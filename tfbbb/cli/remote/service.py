"""Options and arguments of `tfbbb remote`, and its client."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tfbbb.client import Client, Model
    from tfbbb.export.manifest import Manifest

ID = "[0-9a-f]{24}"


def _find_last_value(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """Returns the last value on the command line, else that of the environment."""
    name = str(parameter.name)
    level: Any = context
    while level is not None:
        source = level.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return value if level is context else level.params[name]
        level = level.parent
    return value


Url = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_URL",
        help="Address of the service, http://127.0.0.1:8000 by default.",
        callback=_find_last_value,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        envvar="TFBBB_KEY", help="API key, prefix.secret.", callback=_find_last_value
    ),
]


def check_id(thing: str) -> Callable[[str | None], Any]:
    """Returns the check of an id of a job or a dataset."""

    def check(text: str | None) -> str | None:
        if text is not None and not re.fullmatch(ID, text):
            raise typer.BadParameter(
                f"{text!r} is not the id of a {thing}; `tfbbb remote {thing}s` lists "
                "the ids."
            )
        return text

    return check


JobId = Annotated[str, typer.Argument(callback=check_id("job"), help="Id of the job.")]
JobIdOrNone = Annotated[
    str | None,
    typer.Argument(
        callback=check_id("job"), help="Id of the job; the newest job by default."
    ),
]
ModelName = Annotated[str, typer.Argument(help="Name of the model.")]
Version = Annotated[
    int | None, typer.Option(min=1, help="Version; the highest by default.")
]
Label = Annotated[
    str | None, typer.Option(help="Label of a version, in place of --version.")
]


def check_version_or_label(version: int | None, label: str | None) -> None:
    """Refuses both a version and a label."""
    if version is not None and label is not None:
        raise typer.BadParameter(
            "give either --label or --version.", param_hint="--label"
        )


def read_manifest(
    model: "Model", version: int | None, label: str | None
) -> "tuple[Manifest, list[str]]":
    """Returns the manifest of a version, and the columns that are read as texts."""
    from tfbbb.export.manifest import Manifest

    written = model.describe_manifest(version, label)
    manifest = Manifest.from_json(json.dumps(written))
    texts = [
        feature.name
        for feature in (*manifest.features, manifest.event)
        if feature and (feature.kind == "categorical" or feature.notation)
    ]
    notations = manifest.read_target_notations()
    pairs = zip(manifest.target_names, notations, strict=False)
    return manifest, texts + [name for name, notation in pairs if notation]


@contextmanager
def service(url: Url = None, key: Key = None) -> Iterator["Client"]:
    """Opens a client."""
    from tfbbb.client import Client

    with Client(url, key) as client:
        yield client
