"""Descriptions of models and their versions for the API."""

from collections.abc import Sequence

from service.predicting.version import ServedVersion
from service.shared.json_types import JsonObject
from service.shared.model_messages import (
    Description,
    ModelStatus,
    ModelSummary,
    NewestVersion,
    Status,
    VersionStatus,
)
from tfbbb.export.manifest import Manifest

_OF_MANIFEST = Description.model_fields.keys() - {"version", "recalibration", "verdict"}


def model_status(
    name: str, versions: Sequence[ServedVersion], latest: ServedVersion | None
) -> ModelStatus:
    """Describes the status of some versions of a model."""
    return ModelStatus(
        name=name,
        labels=_latest(latest, versions),
        model_version_status=[_version_status(version) for version in versions],
        description=_describe([*(x for x in versions if x is latest), *versions]),
    )


def model_summary(
    name: str, versions: Sequence[ServedVersion], latest: ServedVersion | None
) -> ModelSummary:
    """Summarises a model with all its versions."""
    description = _describe(versions)
    return ModelSummary(
        name=name,
        task=description and description.task,
        target=description and description.target,
        labels=_latest(latest, versions),
        newest=description
        and NewestVersion(
            version=description.version,
            created=description.created,
            metrics=description.metrics,
            verdict=description.verdict,
        ),
        versions=[_version_status(version) for version in versions],
    )


def _version_status(version: ServedVersion) -> VersionStatus:
    code = "FAILED_PRECONDITION" if version.is_broken else "UNAVAILABLE"
    return VersionStatus(
        version=str(version.number),
        state=version.state,
        status=Status(
            error_code="OK" if version.problem is None else code,
            error_message=version.explanation,
        ),
    )


def _latest(
    latest: ServedVersion | None, versions: Sequence[ServedVersion]
) -> dict[str, str]:
    if latest is None or latest.number not in {v.number for v in versions}:
        return {}
    return {"latest": str(latest.number)}


def _recalibration(manifest: Manifest) -> JsonObject | None:
    """Returns class and config of the recalibration, without its thousands of scores.

    A conformal recalibration has one score per held-out row, whose number stands for
    them.
    """
    if manifest.recalibration is None:
        return None
    config = dict(manifest.recalibration["config"])
    scores = config.pop("scores", None)
    if scores is not None:
        config.pop("group_scores", None)
        config["num_rows"] = len(scores[0])
    return {**manifest.recalibration, "config": config}


def _describe(versions: Sequence[ServedVersion]) -> Description | None:
    for version in versions:
        if version.manifest is not None and not version.is_broken:
            manifest = version.manifest
            return Description(
                version=str(version.number),
                recalibration=_recalibration(manifest),
                verdict=version.verdict,
                **{name: getattr(manifest, name) for name in _OF_MANIFEST},
            )
    return None
