"""Metrics of the disks of this machine."""

import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.shared.database import Database
from service.shared.files import directory_bytes
from service.shared.settings import Settings

# To count the bytes of ten thousand versions takes a second.
_SECONDS_KEPT = 60.0


class DiskMetrics(Collector):
    """The bytes of what the service stores, and the free bytes beside them.

    The bytes are counted once a minute at most. With an object store those of versions
    and datasets are the bytes of this machine's copies.
    """

    def __init__(self, settings: Settings, models: Path, database: Database) -> None:
        data = settings.data_dir
        self._places = {
            "versions": models,
            "datasets": data / "datasets",
            "uploads": data / "uploads",
            "jobs": data / "jobs",
        }
        self._database = database.path
        self._disks = {"data": data, "models": models}
        self._counting = threading.Lock()
        self._counted: Mapping[str, int] = {}
        self._counted_at = float("-inf")

    def describe(self) -> Iterable[Metric]:
        """Returns nothing: the directories may not exist yet."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Counts the bytes, unless they were counted a moment ago."""
        used = GaugeMetricFamily(
            "tfbbb_disk_bytes",
            "Bytes of files on this machine, counted once a minute.",
            labels=["kind"],
        )
        for kind, num_bytes in self._count().items():
            used.add_metric([kind], num_bytes)
        free = GaugeMetricFamily(
            "tfbbb_disk_free_bytes",
            "Bytes that are free on the disk of a directory.",
            labels=["directory"],
        )
        for directory, place in self._disks.items():
            with suppress(OSError):
                free.add_metric([directory], shutil.disk_usage(place).free)
        yield from (used, free)

    def _count(self) -> Mapping[str, int]:
        with self._counting:
            if time.monotonic() - self._counted_at > _SECONDS_KEPT:
                counted = {
                    k: directory_bytes(place) for k, place in self._places.items()
                }
                if (path := self._database) is not None:
                    files = path.parent.glob(f"{path.name}*")
                    counted["database"] = sum(file.stat().st_size for file in files)
                self._counted, self._counted_at = counted, time.monotonic()
            return self._counted
