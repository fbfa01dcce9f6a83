from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.model_process.registry import Registry


class LoadedMetrics(Collector):
    """Which models are there, and which are in memory."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        """Counts versions by model and state."""
        family = GaugeMetricFamily(
            "tfbbb_model_versions",
            "Versions of each model by state; AVAILABLE ones are loaded.",
            labels=["model", "state"],
        )
        for name, versions in self._registry.catalog().items():
            for state, count in Counter(v.state for v in versions).items():
                family.add_metric([name, state], count)
        yield family
