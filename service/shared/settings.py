"""The settings of the service, read from the environment."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from tfbbb.base.validation_errors import describe_rule

logger = logging.getLogger(__name__)

_PREFIX = "TFBBB_"
# Variables of `tfbbb remote` and `tfbbb.client`, often set in the same shell, and an
# option of `tfbbb serve`.
_OTHER_VARIABLES = {"TFBBB_URL", "TFBBB_KEY", "TFBBB_PORT"}


class SettingsError(ValueError):
    """An environment variable has an invalid value."""


class Settings(BaseModel):
    """The settings of the service; each has an environment variable `TFBBB_...`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Annotated[
        Path, Field(description="Models directory, with `NAME/VERSION/saved_model.pb`.")
    ] = Path("saved_models")
    data_dir: Annotated[
        Path, Field(description="Directory of datasets, jobs and the SQLite database.")
    ] = Path(".tfbbb")
    store: Annotated[
        str | None,
        Field(
            pattern=r"^(s3|gs|az)://[^/]+",
            description="`s3://BUCKET/PREFIX` (or `gs://`, `az://`) of datasets, "
            "checkpoints and models; by default the two directories.",
        ),
    ] = None
    database_url: Annotated[
        str | None,
        Field(
            description="`postgresql://...` or `sqlite:///PATH`; by default "
            "tfbbb.sqlite3 in the data directory."
        ),
    ] = None
    admin_key: Annotated[
        SecretStr | None,
        Field(description="The first admin key, `prefix.secret`, for automation."),
    ] = None
    insecure: Annotated[
        bool, Field(description="Whether to accept every request without a key.")
    ] = False
    workers: Annotated[
        int, Field(ge=1, description="Processes that answer, each with the models.")
    ] = min(4, os.cpu_count() or 1)
    model_memory_bytes: Annotated[
        int,
        Field(
            ge=1, description="Most bytes of the models that such a process has loaded."
        ),
    ] = 8 * 2**30
    job_slots: Annotated[
        int,
        Field(ge=0, description="Workers to start, which run a job each at a time."),
    ] = max(1, (os.cpu_count() or 1) // 2)
    job_slots_per_key: Annotated[
        int | None,
        Field(ge=1, description="Jobs that one key may run at the same time."),
    ] = None
    job_memory_bytes: Annotated[
        int, Field(ge=2**20, description="Most resident memory of a job.")
    ] = 8 * 2**30
    job_seconds: Annotated[
        float, Field(gt=0, description="Longest time of one attempt of a job.")
    ] = 24 * 3600.0
    checkpoint_seconds: Annotated[
        float, Field(gt=0, description="Time between checkpoints of a job.")
    ] = 30.0
    xla: Annotated[
        Literal["auto", "measure", "off"],
        Field(
            description="Whether jobs measure if XLA makes them faster: `auto` on "
            "GPUs, `measure` on CPUs too, `off` never."
        ),
    ] = "auto"
    lease_seconds: Annotated[
        float,
        Field(gt=0, description="Time without heartbeat until a lease expires."),
    ] = 30.0
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
        float, Field(gt=0, description="Longest time for 64 KiB of an upload.")
    ] = 30.0
    inspection_seconds: Annotated[
        float, Field(gt=0, description="Most processor time to inspect a table.")
    ] = 900.0
    inspection_memory_bytes: Annotated[
        int, Field(ge=2**28, description="Most address space to inspect a table.")
    ] = 2 * 2**30
    max_datasets: Annotated[
        int, Field(ge=0, description="Most datasets of a key without its own limit.")
    ] = 1000
    max_dataset_bytes: Annotated[
        int, Field(ge=0, description="Most bytes of datasets of such a key.")
    ] = 100 * 2**30
    max_queued_jobs: Annotated[
        int, Field(ge=0, description="Most queued jobs of a key without its own limit.")
    ] = 1000
    min_free_bytes: Annotated[
        int, Field(ge=0, description="Free disk space below which uploads are refused.")
    ] = 2**29
    poll_seconds: Annotated[
        float, Field(gt=0, description="Time between checks for new versions.")
    ] = 1.0
    threads: Annotated[
        int, Field(ge=1, description="Batches that it computes at the same time.")
    ] = max(1, (os.cpu_count() or 1) // min(4, os.cpu_count() or 1))
    default_num_samples: Annotated[
        int | None,
        Field(ge=2, description="Draws per prediction; the model's by default."),
    ] = None
    max_work: Annotated[
        int,
        Field(
            ge=2,
            description="Most work of one request: rows x draws x answers (moments, "
            "and each level or sample of each target).",
        ),
    ] = 10_000_000
    deadline_ms: Annotated[
        float, Field(gt=0, description="Deadline of predictions that name none.")
    ] = 30_000.0
    max_queue_seconds: Annotated[
        float,
        Field(gt=0, description="Time that a prediction may wait before its turn."),
    ] = 2.0
    max_waiting_requests: Annotated[
        int, Field(ge=1, description="Predictions that wait at the same time.")
    ] = 1000
    max_waiting_bytes: Annotated[
        int, Field(ge=1, description="Bytes of bodies that wait for a prediction.")
    ] = 256 * 2**20
    keep_versions: Annotated[
        int | None,
        Field(
            ge=1,
            description="Newest versions of a model that stay; all. Those with a label "
            "and `latest` stay in any case.",
        ),
    ] = None
    version_days: Annotated[
        float | None,
        Field(gt=0, description="Age up to which other versions stay; any."),
    ] = None
    job_days: Annotated[
        float | None,
        Field(gt=0, description="Time that a job stays after its end; for ever."),
    ] = None
    job_log_days: Annotated[
        float | None,
        Field(
            gt=0,
            description="Time that the log and the epochs of a job stay after its end.",
        ),
    ] = 90.0
    dataset_days: Annotated[
        float | None,
        Field(gt=0, description="Time that a dataset without a job stays; for ever."),
    ] = None
    audit_days: Annotated[
        float | None,
        Field(gt=0, description="Time that entries of the audit stay; for ever."),
    ] = None
    max_metric_models: Annotated[
        int,
        Field(
            ge=0,
            description="Models with a label of their own in the metrics of requests.",
        ),
    ] = 100
    max_body_bytes: Annotated[
        int, Field(ge=1, description="Largest body of a `:predict` request.")
    ] = 32 * 2**20
    log_format: Annotated[
        Literal["text", "json"],
        Field(description="What the lines of all logs are: text or JSON."),
    ] = "text"
    access_log: Annotated[
        Literal["text", "json", "off"] | None,
        Field(
            description="How requests are logged: a line of text or JSON each, by "
            "default as all else, or not at all."
        ),
    ] = None

    @classmethod
    def variable(cls, name: str) -> str:
        """Returns the environment variable of a setting."""
        return _PREFIX + name.upper()

    @property
    def effective_database_url(self) -> str:
        """The URL of the database, including its default."""
        path = (self.data_dir / "tfbbb.sqlite3").absolute()
        return self.database_url or f"sqlite:///{path}"

    def environment(self) -> dict[str, str]:
        """Returns these settings, except the admin key, as variables for a child."""
        values = self.model_dump(mode="json", exclude_none=True, exclude={"admin_key"})
        return {self.variable(name): str(value) for name, value in values.items()}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads the settings from variables `TFBBB_...`; others keep their defaults.

        Warns of unknown variables `TFBBB_...`.
        """
        known = [cls.variable(name) for name in cls.model_fields]
        for variable in sorted(environment.keys() - set(known) - _OTHER_VARIABLES):
            if variable.startswith(_PREFIX):
                logger.warning(
                    "%s is not a setting; the settings are %s",
                    variable,
                    ", ".join(known),
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
                f"{cls.variable(str(first['loc'][0]))} {describe_rule(first)}. "
                f"Received: {first['input']!r}"
            ) from None
