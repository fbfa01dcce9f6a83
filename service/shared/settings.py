"""The settings of the service, from the environment."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

logger = logging.getLogger(__name__)

_PREFIX = "TFBBB_"
# What `tfbbb remote` and `tfbbb.client` read, often in the same shell.
_CLIENT_VARIABLES = {"TFBBB_URL", "TFBBB_KEY"}


class SettingsError(ValueError):
    """An environment variable holds an invalid value of its setting."""


class Settings(BaseModel):
    """The operator's settings; each is also an environment variable `TFBBB_...`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Annotated[
        Path, Field(description="Root of the registry, `NAME/VERSION/saved_model.pb`.")
    ] = Path("saved_models")
    data_dir: Annotated[
        Path, Field(description="Datasets, jobs and, unless it is elsewhere, database.")
    ] = Path(".tfbbb")
    database_url: Annotated[
        str | None,
        Field(
            description="`postgresql://...`, or `sqlite:///PATH`; by default "
            "tfbbb.sqlite3 in the data directory."
        ),
    ] = None
    admin_key: Annotated[
        SecretStr | None,
        Field(description="The first admin key, `prefix.secret`, for automation."),
    ] = None
    insecure: Annotated[
        bool, Field(description="Whether requests need no key: anyone may do all.")
    ] = False
    start_models: Annotated[
        bool, Field(description="Whether to start the process that predicts.")
    ] = True
    start_dispatcher: Annotated[
        bool, Field(description="Whether to start the process that runs jobs.")
    ] = True
    job_slots: Annotated[
        int, Field(ge=1, description="Jobs that run at the same time on this machine.")
    ] = max(1, (os.cpu_count() or 1) // 2)
    job_slots_per_key: Annotated[
        int | None, Field(ge=1, description="Jobs that one key may run at a time.")
    ] = None
    job_memory_bytes: Annotated[
        int, Field(ge=2**20, description="Resident memory at which a job is ended.")
    ] = 8 * 2**30
    job_seconds: Annotated[
        float, Field(gt=0, description="Time after which an attempt of a job is ended.")
    ] = 24 * 3600.0
    checkpoint_seconds: Annotated[
        float, Field(gt=0, description="Time between checkpoints of a job.")
    ] = 30.0
    lease_seconds: Annotated[
        float,
        Field(gt=0, description="Silence after which a job is taken for dead."),
    ] = 30.0
    warm_seconds: Annotated[
        float,
        Field(ge=0, description="Time that a trainer waits for its next job."),
    ] = 300.0
    max_upload_bytes: Annotated[int, Field(ge=1, description="Largest upload.")] = (
        8 * 2**30
    )
    max_upload_rows: Annotated[
        int, Field(ge=1, description="Most rows of a dataset.")
    ] = 100_000_000
    max_upload_columns: Annotated[
        int, Field(ge=1, description="Most columns of a dataset.")
    ] = 4096
    max_decompressed_bytes: Annotated[
        int, Field(ge=1, description="Most bytes of a dataset's values in memory.")
    ] = 64 * 2**30
    upload_stall_seconds: Annotated[
        float, Field(gt=0, description="Time in which 64 KiB of an upload must come.")
    ] = 30.0
    inspection_seconds: Annotated[
        float, Field(gt=0, description="Processor time that reading a table may take.")
    ] = 900.0
    inspection_memory_bytes: Annotated[
        int, Field(ge=2**28, description="Address space that it may take.")
    ] = 2 * 2**30
    max_datasets: Annotated[
        int, Field(ge=0, description="Most datasets of a key without its own limit.")
    ] = 1000
    max_dataset_bytes: Annotated[
        int, Field(ge=0, description="Most bytes in them.")
    ] = 100 * 2**30
    max_queued_jobs: Annotated[
        int, Field(ge=0, description="Most queued jobs of a key without its own limit.")
    ] = 1000
    min_free_bytes: Annotated[
        int, Field(ge=0, description="Free disk below which nothing is taken in.")
    ] = 2**29
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
    max_body_bytes: Annotated[
        int, Field(ge=1, description="Largest body of a `:predict` request.")
    ] = 32 * 2**20

    @classmethod
    def variable(cls, name: str) -> str:
        """The environment variable of a setting."""
        return _PREFIX + name.upper()

    @property
    def effective_database_url(self) -> str:
        """The database, whether it was named or not."""
        path = (self.data_dir / "tfbbb.sqlite3").absolute()
        return self.database_url or f"sqlite:///{path}"

    def environment(self) -> dict[str, str]:
        """The variables that hand these settings, but for the key, to a child."""
        values = self.model_dump(mode="json", exclude_none=True, exclude={"admin_key"})
        return {self.variable(name): str(value) for name, value in values.items()}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads the settings that are set as `TFBBB_...`; the others keep defaults.

        A variable `TFBBB_...` that is no setting, nor one of clients, is warned of.

        Raises:
            SettingsError: Names the variable with a wrong value.
        """
        known = [cls.variable(name) for name in cls.model_fields]
        for variable in sorted(environment.keys() - set(known) - _CLIENT_VARIABLES):
            if variable.startswith(_PREFIX):
                logger.warning(
                    "%s is no setting; those are %s", variable, ", ".join(known)
                )
        values = {
            name: environment[variable]
            for name in cls.model_fields
            if (variable := cls.variable(name)) in environment
        }
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(
                f"{cls.variable(str(first['loc'][0]))}: {first['msg']}. "
                f"Received: {first['input']!r}"
            ) from None
