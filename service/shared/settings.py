"""The settings of the service, read from the environment."""

import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from tfbbb.base.validation_errors import describe_rule

logger = logging.getLogger(__name__)

_PREFIX = "TFBBB_"
# Parts without characters that a URL would quote.
PATH_PREFIX = r"(/[A-Za-z0-9._~-]+)+"
# As browsers send it, or all.
_ORIGIN = r"(\*|https?://[^/,\s]+)"
# Variables of `tfbbb remote` and `tfbbb.client`, often set in the same shell, and an
# option of `tfbbb serve`.
_OTHER_VARIABLES = {"TFBBB_URL", "TFBBB_KEY", "TFBBB_PORT"}


class SettingsError(ValueError):
    """An environment variable has an invalid value."""


class Settings(BaseModel):
    """The settings of the service; each has an environment variable `TFBBB_...`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Path = Field(Path("saved_models"), description="models, with NAME/VERSION")
    data_dir: Path = Field(
        Path(".tfbbb"), description="datasets, jobs and the SQLite database"
    )
    store: str | None = Field(
        None, pattern=r"^s3://[^/]+", description="s3://BUCKET/PREFIX"
    )
    database_url: str | None = Field(
        None, description="postgresql://... or sqlite:///PATH"
    )
    admin_key: SecretStr | None = Field(
        None, description="the first admin key, prefix.secret"
    )
    insecure: bool = Field(False, description="1: accept every request without a key")
    workers: int = Field(
        min(4, os.cpu_count() or 1), ge=1, description="processes that speak HTTP"
    )
    model_memory_bytes: int = Field(
        8 * 2**30, ge=1, description="most bytes of the models in a process"
    )
    job_slots: int = Field(
        max(1, (os.cpu_count() or 1) // 2),
        ge=0,
        description="workers to start, 0: none; cores/2",
    )
    job_slots_per_key: int | None = Field(
        None, ge=1, description="jobs that one key may run at a time"
    )
    job_memory_bytes: int = Field(
        8 * 2**30, ge=2**20, description="most resident memory of a job"
    )
    job_seconds: float = Field(
        24 * 3600.0, gt=0, description="longest time of one attempt of a job"
    )
    checkpoint_seconds: float = Field(
        30.0, gt=0, description="time between checkpoints of a job"
    )
    lease_seconds: float = Field(
        30.0, gt=0, description="silence after which a lease expires"
    )
    max_upload_bytes: int = Field(8 * 2**30, ge=1, description="largest upload")
    max_upload_rows: int = Field(100000000, ge=1, description="most rows of a dataset")
    inspection_seconds: float = Field(
        900.0, gt=0, description="most processor time to read a table"
    )
    inspection_memory_bytes: int = Field(
        2 * 2**30, ge=2**28, description="most memory to read a table"
    )
    max_queued_jobs: int = Field(1000, ge=0, description="most queued jobs of a key")
    min_free_bytes: int = Field(
        2**29, ge=0, description="free disk that uploads must leave"
    )
    poll_seconds: float = Field(
        1.0, gt=0, description="time between checks for new versions"
    )
    threads: int = Field(
        max(1, (os.cpu_count() or 1) // min(4, os.cpu_count() or 1)),
        ge=1,
        description="batches each computes; cores/workers",
    )
    default_num_samples: int | None = Field(
        None, ge=2, description="draws per prediction; the model's"
    )
    max_work: int = Field(
        10000000, ge=2, description="most rows x draws x answers at once"
    )
    deadline_ms: float = Field(
        30000.0, gt=0, description="deadline of predictions without one"
    )
    max_queue_seconds: float = Field(
        2.0, gt=0, description="time that a prediction may wait"
    )
    max_waiting_requests: int = Field(
        1000, ge=1, description="predictions that wait at a time"
    )
    max_waiting_bytes: int = Field(
        256 * 2**20, ge=1, description="bodies of predictions that wait"
    )
    keep_versions: int | None = Field(
        None, ge=1, description="newest versions of a model that stay"
    )
    version_days: float | None = Field(
        None, gt=0, description="time that other versions stay"
    )
    job_days: float | None = Field(
        None, gt=0, description="time that a job stays after its end"
    )
    dataset_days: float | None = Field(
        None, gt=0, description="time that an unused dataset stays"
    )
    audit_days: float | None = Field(
        None, gt=0, description="time that entries of the audit stay"
    )
    root_path: str | None = Field(
        None,
        pattern=f"^{PATH_PREFIX}$",
        description="/PATH below which a proxy has the service",
    )
    cors_origins: str | None = Field(
        None,
        pattern=f"^{_ORIGIN}(,{_ORIGIN})*$",
        description="https://HOST of pages that may send keys, by commas",
    )
    max_body_bytes: int = Field(
        32 * 2**20, ge=1, description="largest body of a :predict request"
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="lines of all logs: text or json"
    )
    access_log: Literal["text", "json", "off"] | None = Field(
        None, description="line per request: text, json or off"
    )

    @classmethod
    def variable(cls, name: str) -> str:
        """Returns the environment variable of a setting."""
        return _PREFIX + name.upper()

    @classmethod
    def table(cls, without: Collection[str] = ()) -> str:
        """Returns a line for each setting: its variable, default and description."""
        return "\n".join(
            f"{cls.variable(name):<30}{_shown(name, field.default):<10}"
            f"{field.description}"
            for name, field in cls.model_fields.items()
            if name not in without
        )

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
        """Reads the settings from variables `TFBBB_...`, and warns of unknown ones."""
        known = [cls.variable(name) for name in cls.model_fields]
        for variable in sorted(environment.keys() - set(known) - _OTHER_VARIABLES):
            if variable.startswith(_PREFIX):
                told = f"the settings are {', '.join(known)}"
                logger.warning(f"{variable} is not a setting; {told}")
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


def _shown(name: str, default: object) -> str:
    """Returns a default with its unit, which the name tells."""
    if isinstance(default, bool):
        return str(int(default))
    if not isinstance(default, int | float):
        return "not set" if default is None else str(default)
    if name.endswith("_bytes"):
        is_large = default >= 2**30
        return f"{default / 2**30:g} GiB" if is_large else f"{default / 2**20:g} MiB"
    units = {"_seconds": "s", "_ms": "ms", "_days": "days"}
    unit = next((units[end] for end in units if name.endswith(end)), "")
    return f"{default:.15g} {unit}".rstrip()
