"""A service of the version before goes on while a new one upgrades the database."""

import io
import json
import subprocess
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from service.shared.database import Database
from service.shared.database.upgrade import revision, revisions
from tests.service.postgresql import new_database
from tests.service.running import TABLE, Replica, new_key, stopped_at_the_end
from tests.service.stores import S3
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
_MIGRATIONS = "service/shared/database/migrations/versions"


def git(*command: str) -> bytes:
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=True)
    return done.stdout


def migrations(commit: str | None = None) -> list[tuple[str, str]]:
    """Returns name and digest of the migrations of a commit, or of the working tree."""
    if commit is None:
        files = sorted(ROOT.joinpath(_MIGRATIONS).glob("0*.py"))
        digests = git("hash-object", *map(str, files)).decode().split()
        return [
            (file.name, digest) for file, digest in zip(files, digests, strict=True)
        ]
    listed = git("ls-tree", commit, f"{_MIGRATIONS}/").decode().splitlines()
    # The mode, the type, the digest and the path.
    found = sorted((Path(line.split()[3]).name, line.split()[2]) for line in listed)
    return [each for each in found if each[0].startswith("0")]


def version_before() -> str:
    """Returns the newest commit that lacks migrations, and has all before them."""
    if not (ROOT / ".git").exists():
        pytest.skip("the version before is in the history of a clone")
    now = migrations()
    for commit in git("rev-list", "--first-parent", "HEAD").decode().split():
        then = migrations(commit)
        if then and len(then) < len(now) and then == now[: len(then)]:
            return commit
    pytest.skip("the history of this clone is too short")


def write_version_before(directory: Path) -> None:
    """Writes the packages of the version before."""
    archive = git("archive", version_before(), "tfbbb", "service")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")


class Load:
    """Requests that follow one another in threads until the block ends.

    Attributes:
        statuses: How often a request of a name got a status.
    """

    def __init__(self) -> None:
        self.statuses: Counter[tuple[str, int]] = Counter()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, name: str, request: Callable[[], int]) -> None:
        def repeat() -> None:
            while not self._over.is_set():
                self.statuses[name, request()] += 1
                time.sleep(0.1)

        self._threads.append(threading.Thread(target=repeat))
        self._threads[-1].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def test_old_service_goes_on_beside_the_one_that_upgrades(
    postgresql: str, s3: S3, tmp_path: Path
) -> None:
    root, store, shared_url = tmp_path, s3.new_store(), new_database(postgresql)
    write_version_before(root / "code")
    fields = {"TFBBB_START_DISPATCHER": "0", "TFBBB_START_MODELS": "0"}
    fields |= {"TFBBB_DATABASE_URL": shared_url, "TFBBB_STORE": store}
    # Python would find the packages of the working directory first.
    before = {"PYTHONPATH": str(root / "code"), "PYTHONSAFEPATH": "1"}
    old = Replica(root / "old", **fields, **before)
    database = Database(shared_url)
    with stopped_at_the_end(old), Load() as load:
        old.wait_until_ready()
        assert revision(database) in revisions()[:-1]
        _, key_of_old = new_key(old)
        csv = {"Content-Type": "text/csv"}
        table = old.post("/v1/datasets", content=TABLE, headers=csv)
        job = {
            "dataset_id": table["id"],
            "target": "y",
            "task": "regression",
            "name": "waits",
        }

        def submit(replica: Replica) -> Callable[[], int]:
            return lambda: replica.client.post("/v1/jobs", json=job).status_code

        def read(replica: Replica, *paths: str) -> Callable[[], int]:
            return lambda: max(replica.client.get(p).status_code for p in paths)

        everything = ["/v1/jobs", "/v1/datasets", "/v1/keys", "/metrics"]
        load.add("jobs of old", submit(old))
        load.add("lists of old", read(old, *everything))
        wait_until(lambda: load.statuses["jobs of old", 201] > 5)

        new = Replica(root / "new", **fields, TFBBB_LOG_FORMAT="json")
        with stopped_at_the_end(new):
            with load:
                new.wait_until_ready()
                assert revision(database) == revisions()[-1]
                load.add("jobs of new", submit(new))
                load.add("lists of new", read(new, *everything))
                # What one writes, the other reads.
                _, key_of_new = new_key(new)
                for replica, headers in ((old, key_of_new), (new, key_of_old)):
                    answered = replica.client.get("/v1/jobs", headers=headers)
                    assert answered.status_code == 200
                wait_until(lambda: load.statuses["lists of new", 200] > 5)
            log = new.log.read_text().splitlines()
    assert {name for name, _ in load.statuses} == {
        f"{what} of {which}" for what in ("jobs", "lists") for which in ("old", "new")
    }
    refused = [
        found
        for found in load.statuses
        if found[1] != (201 if found[0].startswith("jobs") else 200)
    ]
    assert refused == [], load.statuses
    said = [json.loads(line)["message"] for line in log]
    assert any(line.startswith("upgrading the database postgresql://") for line in said)
    database.close()
