"""A process that leases every job it can: `python -m tests.service.shared.claiming`."""

import sys
import time
from pathlib import Path

from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings


def main(url: str, root: str) -> None:
    settings = Settings(
        database_url=url, data_dir=Path(root), models=Path(root), lease_seconds=600.0
    )
    queue = Queue(Database(url), settings)
    print("ready", flush=True)
    sys.stdin.readline()
    while (lease := queue.lease()) is not None:
        print(lease.job_id, flush=True)
        # Lets another one in: SQLite's writers do not queue.
        time.sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
