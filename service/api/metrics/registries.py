"""The metrics of the API, which may be those of several processes."""

import os

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from service.api.shared_counters import VARIABLE


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
        self._directory = os.environ.get(VARIABLE)
        if self._directory is None:
            ProcessCollector(registry=self.observed)

    def text(self) -> bytes:
        """Returns all metrics, in the format of Prometheus."""
        counted = self.counted
        if self._directory is not None:
            counted = CollectorRegistry()
            MultiProcessCollector(counted, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(self.observed) + generate_latest(counted)
