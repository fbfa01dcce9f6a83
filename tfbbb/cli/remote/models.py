"""`tfbbb remote models`."""

from tfbbb.base.types import JsonObject
from tfbbb.cli.listing import AsJson, print_list
from tfbbb.cli.remote.service import Key, Url, service


def models(as_json: AsJson = False, url: Url = None, key: Key = None) -> None:
    """List the models with their versions and labels.

    Example: tfbbb remote models --json
    """
    with service(url, key) as client:
        print_list(
            client.models(),
            {
                "model": lambda model: model["name"],
                "task": lambda model: model["task"],
                "target": lambda model: model["target"],
                "versions": lambda model: ", ".join(
                    map(_format_version, model["versions"])
                ),
                "labels": lambda model: ", ".join(
                    f"{label} {version}" for label, version in model["labels"].items()
                ),
                "verdict": _format_verdict,
            },
            as_json=as_json,
            if_none="There is no model yet; create one with `tfbbb remote train`.",
        )


def _format_verdict(model: JsonObject) -> str:
    """Returns for example `2: worse than linear model`."""
    # Services of earlier releases list none.
    newest = model.get("newest") or {}
    said = newest.get("verdict")
    return f"{newest['version']}: {said}" if said else ""


def _format_version(status: JsonObject) -> str:
    broken = " (broken)" if status["state"] == "END" else ""
    return f"{status['version']}{broken}"
