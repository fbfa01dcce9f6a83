"""What a version says of its training, read without TensorFlow."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tfbbb.data.schema import Schema
from tfbbb.training.spec import JobSpec, SpecError

# In `assets.extra` of a SavedModel, where TensorFlow Serving passes over it.
RECORD_FILE = "training.json"
_FORMAT = 1


@dataclass(frozen=True)
class TrainingRecord:
    """What was trained, and by what the table was read.

    Attributes:
        spec: What was asked for, with the hidden layers that were taken.
        schema: Features, target and scaling.
    """

    spec: JobSpec
    schema: Schema

    def to_json(self) -> bytes:
        """Returns what `read` reads."""
        values = {
            "format": _FORMAT,
            "spec": self.spec.model_dump(mode="json"),
            "schema": self.schema.to_dict(),
        }
        return json.dumps(values, indent=2).encode()

    @classmethod
    def read(cls, version: Path) -> "TrainingRecord":
        """Reads the record of a version's directory.

        Raises:
            SpecError: There is none, or one that another tfbbb wrote.
        """
        try:
            text = (version / "assets.extra" / RECORD_FILE).read_bytes()
        except FileNotFoundError:
            raise continuation_error(
                version, f"it was written without {RECORD_FILE}"
            ) from None
        try:
            values = json.loads(text)
            if values["format"] != _FORMAT:
                raise continuation_error(version, f"its format is {values['format']!r}")
            spec = JobSpec.model_validate(values["spec"])
            return cls(spec, Schema.from_dict(values["schema"]))
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, SpecError):
                raise
            reason = f"this tfbbb does not know its {RECORD_FILE}"
            raise continuation_error(version, reason) from error


def continuation_error(version: Path, reason: str) -> SpecError:
    """The error of a version that says too little of its training."""
    name = f"{version.parent.name}/{version.name}"
    return SpecError(f"Training can't go on from {name}: {reason}.")
