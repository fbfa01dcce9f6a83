import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

logger = logging.getLogger(__name__)

_PREFIX = "TFBBB_"


class SettingsError(ValueError):
    """An environment variable holds what its setting can't be."""


class Settings(BaseModel):
    """What an operator chooses; each is also an environment variable `TFBBB_...`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Annotated[
        Path, Field(description="Root of the registry, `NAME/VERSION/saved_model.pb`.")
    ] = Path("saved_models")
    poll_seconds: Annotated[
        float, Field(gt=0, description="Time between looks for new versions.")
    ] = 1.0
    threads: Annotated[
        int, Field(ge=1, description="Requests that are computed at the same time.")
    ] = os.cpu_count() or 1
    default_num_samples: Annotated[
        int | None,
        Field(ge=2, description="Draws behind an answer; the model's own by default."),
    ] = None
    max_rows_times_samples: Annotated[
        int, Field(ge=2, description="Most rows x draws of one request.")
    ] = 1_000_000
    max_body_bytes: Annotated[int, Field(ge=1, description="Largest request body.")] = (
        32 * 2**20
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads the settings that are set as `TFBBB_...`; the others keep defaults.

        A variable `TFBBB_...` that is no setting is warned of.

        Raises:
            SettingsError: Names the variable with a wrong value.
        """
        known = [_PREFIX + name.upper() for name in cls.model_fields]
        for variable in sorted(environment.keys() - set(known)):
            if variable.startswith(_PREFIX):
                logger.warning(
                    "%s is no setting; those are %s", variable, ", ".join(known)
                )
        values = {
            name: environment[variable]
            for name in cls.model_fields
            if (variable := _PREFIX + name.upper()) in environment
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(
                f"{_PREFIX}{str(first['loc'][0]).upper()}: {first['msg']}. "
                f"Received: {first['input']!r}"
            ) from None
