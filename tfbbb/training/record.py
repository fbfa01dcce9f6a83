"""The training record of a version, read without TensorFlow."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tfbbb.tables.schema import Schema
from tfbbb.training.spec import JobSpec, SpecError

# In `assets.extra` of a SavedModel, which TensorFlow Serving ignores.
RECORD_FILE = "training.json"
_FORMAT = 1


@dataclass(frozen=True)
class TrainingRecord:
    """The spec and the schema of a training.

    Attributes:
        spec: The spec, including the chosen hidden layers.
        schema: Features, target and scaling.
    """

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
            # Records that know no encoding are of standardised numbers.
            values["spec"]["model"].setdefault("numeric_encoding", "standardized")
            spec = JobSpec.model_validate(values["spec"])
            return cls(spec, Schema.from_dict(values["schema"]))
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, SpecError):
                raise
            reason = f"this version of tfbbb cannot read its {RECORD_FILE}"
            raise continuation_error(version, reason) from error


def continuation_error(version: Path, reason: str) -> SpecError:
    """Returns the error of a version that cannot be a parent version."""
    name = f"{version.parent.name}/{version.name}"
    return SpecError(f"Training cannot start from {name}: {reason}.")
