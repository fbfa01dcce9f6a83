"""The ledger of versions; adopts versions that no job published."""

from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.shared.database import Database, report_outage
from service.shared.database.tables import Job, Label, ModelVersion
from service.shared.errors import Unavailable
from service.shared.job_state import UNFINISHED
from service.shared.store import Store
from service.shared.versions import (
    MadeLatest,
    made_latest,
    manifest_digest,
)
from tfbbb.export.manifest import Manifest


class AdoptionError(Exception):
    """A directory is not the version that is recorded under its number."""


class Ledger:
    """Compares directories of versions with the recorded versions.

    A version that no job published is adopted when it is first found. Another manifest,
    which has the SHA-256 of every file, is then refused under its number.
    """

    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._store = store

    def record(self, name: str, number: int, directory: Path) -> None:
        """Checks a directory of verified files against its record, or adopts it."""
        manifest, digest = Manifest.read(directory), manifest_digest(directory)
        with report_outage(
            f"The database did not answer whether it knows version {number} of the "
            f"model {name!r}"
        ):
            with self._database.reading() as session:
                version = session.get(ModelVersion, (name, number))
            if version is None:
                version = self._adopt(name, number, manifest, digest)
        _check(version, digest)

    def labelled(self) -> set[tuple[str, int]]:
        """Returns the versions that labels point at."""
        with report_outage(), self._database.reading() as session:
            found = session.execute(select(Label.name, Label.number))
            return {(name, number) for name, number in found}

    def made_latest(self) -> dict[str, MadeLatest]:
        """Returns the versions that somebody has made `latest`, by model."""
        with report_outage(), self._database.reading() as session:
            return made_latest(session)

    def versions(self) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
        """Returns name and number of the recorded versions: the kept, the deleted."""
        columns = (ModelVersion.name, ModelVersion.number, ModelVersion.deleted_at)
        kept: set[tuple[str, int]] = set()
        deleted: set[tuple[str, int]] = set()
        with report_outage(), self._database.reading() as session:
            for name, number, deleted_at in session.execute(select(*columns)):
                (kept if deleted_at is None else deleted).add((name, number))
        return kept, deleted

    def _adopt(
        self, name: str, number: int, manifest: Manifest, digest: str
    ) -> ModelVersion:
        try:
            with self._database.writing() as session:
                _check_published(session, manifest)
                version = session.get(ModelVersion, (name, number))
                if version is None and not self._store.is_directory:
                    raise AdoptionError(
                        f"no job has published version {number} of the model {name!r} "
                        f"to {self._store.url}; only jobs add versions there."
                    )
                if version is None:
                    version = ModelVersion(
                        name=name,
                        number=number,
                        digest=digest,
                        lineage=dict(manifest.lineage or {}),
                        created_at=self._database.now(session),
                    )
                    session.add(version)
            return version
        except IntegrityError:
            # Another process has adopted the version meanwhile.
            with self._database.reading() as session:
                return session.get_one(ModelVersion, (name, number))


def _check_published(session: Session, manifest: Manifest) -> None:
    """Waits for the transaction of the job that publishes a version, if any."""
    job_id = (manifest.lineage or {}).get("job_id")
    if not isinstance(job_id, str):
        return
    job = session.get(Job, job_id, with_for_update=True)
    if job is not None and job.state in UNFINISHED:
        raise Unavailable(f"The version is still being published by the job {job.id}.")


def _check(version: ModelVersion, digest: str) -> None:
    what = f"version {version.number} of the model {version.name!r}"
    advice = "numbers are never used twice, so rename the directory to a higher one."
    if version.deleted_at is not None:
        raise AdoptionError(f"{what} was deleted; {advice}")
    if version.digest != digest:
        raise AdoptionError(
            f"{what} was published with another manifest (sha256 "
            f"{version.digest:.12}..., here {digest:.12}...); {advice}"
        )
