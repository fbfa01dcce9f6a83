"""The training record of a version, read without TensorFlow."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tfbbb.base.types import Config
from tfbbb.tables.column_names import list_names
from tfbbb.tables.schema import Schema
from tfbbb.training.spec import JobSpec, ModelSpec, SpecError

# In `assets.extra` of a SavedModel, which TensorFlow Serving ignores.
RECORD_FILE = "training.json"
_FORMAT = 1


@dataclass(frozen=True)
class TrainingRecord:
    """The spec of a training, with the chosen hidden layers, and its schema."""

    spec: JobSpec
    schema: Schema

    def to_json(self) -> bytes:
        """Returns the record as JSON, which `read` reads."""
        values = {
            "format": _FORMAT,
            "spec": self.spec.model_dump(mode="json"),
            "schema": self.schema.to_dict(),
        }
        return json.dumps(values, indent=2).encode()

    @classmethod
    def read(cls, version: Path) -> "TrainingRecord":
        """Reads the record of a version's directory."""
        try:
            text = (version / "assets.extra" / RECORD_FILE).read_bytes()
        except FileNotFoundError:
            raise continuation_error(version, f"it has no file {RECORD_FILE}") from None
        try:
            values = json.loads(text)
            if values["format"] != _FORMAT:
                raise continuation_error(version, f"its format is {values['format']!r}")
            spec = JobSpec.model_validate(_present(values["spec"], version))
            return cls(spec, Schema.from_dict(values["schema"]))
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, SpecError):
                raise
            reason = f"this version of tfbbb cannot read its {RECORD_FILE}"
            raise continuation_error(version, reason) from error

    def check_continuation(self, spec: JobSpec, column_names: Sequence[str]) -> None:
        """Raises `SpecError` if a spec cannot start from this version."""
        schedule = spec.training.kl_schedule
        if schedule is not None and not schedule.make().counts_rows_once:
            raise SpecError(
                "A training with a parent version must count its rows once, at "
                "temperature 1, or the prior would weigh rows differently from the "
                f"likelihood. Received: kl_schedule={schedule.model_dump()}",
                "training.kl_schedule",
            )
        _check_network(self.spec)
        event = self.schema.event and self.schema.event.name
        for name, asked, own in (
            ("target", spec.targets, self.spec.targets),
            ("exposure", spec.exposure, self.schema.exposure),
            ("event", spec.event, event),
            ("task", spec.task or self.schema.task, self.schema.task),
        ):
            if asked != own:
                shown = list_names(own) if isinstance(own, tuple) else repr(own)
                received = getattr(spec, name)
                raise SpecError(
                    f"The {name} must be that of the parent version, {shown}. "
                    f"Received: {name}={received!r}",
                    name,
                )
        given = {
            name: value
            for name, value in spec.model
            if value not in (getattr(ModelSpec(), name), getattr(self.spec.model, name))
        }
        if given:
            raise SpecError(
                "A training with a parent version uses the parent's network; leave "
                f"`model` out. Received: {spec.model.model_dump(include=set(given))}",
                "model",
            )
        _check_features(spec, self, column_names)


def _present(spec: Config, version: Path) -> Config:
    """Returns a spec of a version before 0.3, which had more fields, as of today."""
    model, training = dict(spec["model"]), dict(spec["training"])
    if model.pop("layers", None):
        raise continuation_error(version, "its job names layers")
    model.pop("estimator", None)
    if isinstance(rate := training.get("learning_rate"), dict):
        training["learning_rate"] = rate["initial"]
    return {**spec, "model": model, "training": training}


def continuation_error(version: Path, reason: str) -> SpecError:
    """Returns the error of a version that cannot be a parent version."""
    name = f"{version.parent.name}/{version.name}"
    return SpecError(f"Training cannot start from {name}: {reason}.")


def _check_network(parent: JobSpec) -> None:
    """Raises `SpecError` for a posterior that cannot be a prior at temperature 1."""
    posterior, prior = parent.model.posterior, parent.model.prior
    if not posterior.family.has_density:
        raise SpecError(
            f"The posterior '{posterior.name}' of the parent version has no density, "
            "so it cannot become a prior."
        )
    schedule = parent.training.kl_schedule
    if schedule is None or schedule.make().counts_rows_once:
        return
    others = sorted({posterior.name, prior.name} - {"mean_field_normal", "normal"})
    if schedule.name != "tempered" or others:
        received = ", ".join([f"kl_schedule={schedule.model_dump()}", *others])
        raise SpecError(
            "The parent version counts its rows more than once, at a temperature other "
            "than 1, and only normal posteriors with normal priors can be taken to "
            "temperature 1. Train the parent with normal priors, or with "
            '"kl_schedule": "constant". '
            f"Received: {received}"
        )


def _check_features(
    spec: JobSpec, parent: TrainingRecord, column_names: Sequence[str]
) -> None:
    known = [column.name for column in parent.schema.predictors]
    left_out = {name for name, _ in parent.schema.left_out} | {
        name for name, text in spec.columns.items() if text == "ignore"
    }
    requested = spec.features or [
        name for name in column_names if name not in {*spec.not_features, *left_out}
    ]
    for problem, names in (
        ("lacks the features", [name for name in requested if name not in known]),
        ("also has the features", [name for name in known if name not in requested]),
    ):
        if names:
            raise SpecError(
                f"The parent version {problem} {list_names(names)}; its features "
                f"are {list_names(known)}."
            )
