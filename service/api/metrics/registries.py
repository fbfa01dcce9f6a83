"""The metrics of the API, which may be those of several processes."""

import os
from collections.abc import Iterable
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from service.shared.shared_counters import VARIABLE
from tfbbb.version import __version__, commit


class _Constant(Collector):
    """A metric that never changes, also where several processes count."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)


class Registries:
    """The metrics of the API.

    Attributes:
        counted: What this process counts. If several processes share the counters,
            their sums are reported, and no figures of a single process.
        observed: What is read from elsewhere, such as the database.
    """

    def __init__(self) -> None:
        self.counted = CollectorRegistry()
        self.observed = CollectorRegistry()
        build = GaugeMetricFamily(
            "tfbbb_build_info",
            "1, with the version of the service and the commit of its source.",
            labels=["version", "commit"],
        )
        build.add_metric([__version__, commit()], 1)
        self.observed.register(_Constant(build))
        self._directory = os.environ.get(VARIABLE)
        if self._directory is None:
            ProcessCollector(registry=self.observed)

    def text(self) -> bytes:
        """Returns all metrics, in the format of Prometheus."""
        counted = self.counted
        if self._directory is not None:
            counted = CollectorRegistry()
            _forget_dead_workers(Path(self._directory))
            MultiProcessCollector(counted, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(self.observed) + generate_latest(counted)


def _forget_dead_workers(directory: Path) -> None:
    """Removes the gauges of processes that were killed."""
    for file in directory.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]
