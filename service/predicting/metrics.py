"""Metrics of predictions and of loaded versions."""

import collections
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from service.predicting.answer import VersionName
from service.predicting.registry import ModelRegistry

# In units of the target; two bounds per power of ten.
_DEVIATIONS = np.array([float(f"{m}e{e}") for e in range(-6, 7) for m in (1, 3)])
_SHARES = np.round(np.linspace(0.1, 1.0, 10), 1)
_FAMILIARITIES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
_ENTROPIES = np.array([0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0])

_Mode = Literal["liveall", "livemax", "livesum"]

_FIGURES = {
    "tfbbb_predictive_standard_deviation": (
        "Standard deviation of each prediction, in units of the target.",
        _DEVIATIONS,
    ),
    "tfbbb_predictive_entropy": ("Entropy of each prediction, in nats.", _ENTROPIES),
    "tfbbb_epistemic_share": (
        "Share of the variance, or of the entropy, that more data would remove.",
        _SHARES,
    ),
    "tfbbb_familiarity": (
        "Share of rows like the training rows that are at most as usual as each row; "
        "of such rows, 5 % have .05 or less.",
        _FAMILIARITIES,
    ),
}


class UncertaintyMetrics:
    """Histograms of the uncertainty of each version, and of the familiarity of rows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._histograms = {
            name: Histogram(
                name,
                description,
                ["model", "version"],
                buckets=bounds.tolist(),
                registry=registry,
            )
            for name, (description, bounds) in _FIGURES.items()
        }
        # To find one by its labels takes longer than to count in it.
        self._of_versions: dict[tuple[str, VersionName], Histogram] = {}

    def observe(
        self, version: VersionName, blocks: Sequence[Mapping[str, np.ndarray]]
    ) -> None:
        """Counts the rows of some blocks, if they contain their uncertainty."""

        def joined(name: str) -> np.ndarray:
            return np.concatenate([block[name].ravel() for block in blocks])

        found = {}
        if "variance" in blocks[0]:
            whole, part = joined("variance"), joined("epistemic")
            found["tfbbb_predictive_standard_deviation"] = np.sqrt(whole)
            found["tfbbb_epistemic_share"] = part / np.where(whole > 0, whole, 1)
        elif "entropy" in blocks[0]:
            whole, part = joined("entropy"), joined("mutual_information")
            found["tfbbb_predictive_entropy"] = whole
            found["tfbbb_epistemic_share"] = part / np.where(whole > 0, whole, 1)
        if "familiarity" in blocks[0]:
            found["tfbbb_familiarity"] = joined("familiarity")
        for figure, values in found.items():
            self._count(figure, version, values)

    def _count(self, figure: str, version: VersionName, values: np.ndarray) -> None:
        bounds, key = _FIGURES[figure][1], (figure, version)
        if key not in self._of_versions:
            self._of_versions[key] = self._histograms[figure].labels(*version)
        histogram = self._of_versions[key]
        # A number of single precision at a bound is not above it.
        places = bounds.astype(values.dtype).searchsorted(values)
        # `observe` would take a second for a million rows.
        for place, count in collections.Counter(places.tolist()).items():
            histogram._buckets[place].inc(count)
        histogram._sum.inc(float(values.sum()))


class ProcessMetrics:
    """Figures of the API processes that are alive, and of what waits for them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, description: str, mode: _Mode) -> Gauge:
            return Gauge(name, description, registry=registry, multiprocess_mode=mode)

        self._resident = gauge(
            "tfbbb_api_resident_memory_bytes",
            "Resident memory of each API process.",
            "liveall",
        )
        self._computed = gauge(
            "tfbbb_api_cpu_seconds", "Processor time of each API process.", "liveall"
        )
        started = gauge(
            "tfbbb_api_start_time_seconds",
            "When the API process was started that was started last.",
            "livemax",
        )
        started.set(time.time())
        self._waiting = gauge(
            "tfbbb_waiting_predictions",
            "Predictions that have no answer yet.",
            "livesum",
        )
        self.refused = Counter(
            "tfbbb_refused_predictions",
            "Predictions refused because too much was waiting.",
            registry=registry,
        )

    def observe(self, waiting: int) -> None:
        """Measures memory and processor time; counts what waits."""
        self._waiting.set(waiting)
        self._resident.set(psutil.Process().memory_info().rss)
        self._computed.set(time.process_time())


def loaded_metrics(registry: ModelRegistry) -> Iterable[Metric]:
    """Counts versions by model and state, and tells which models are judged bad."""
    family = GaugeMetricFamily(
        "tfbbb_model_versions",
        "Versions of each model by state; AVAILABLE ones are loaded.",
        labels=["model", "state"],
    )
    judged = GaugeMetricFamily(
        "tfbbb_model_verdict",
        "1 for each model whose version `latest` has a verdict, such as `learned "
        "nothing`.",
        labels=["model", "verdict"],
    )
    waiting = GaugeMetricFamily(
        "tfbbb_model_versions_waiting",
        "Newer versions that wait for somebody to make them `latest`.",
        labels=["model"],
    )
    for name, versions in registry.catalog().items():
        for state, count in collections.Counter(v.state for v in versions).items():
            family.add_metric([name, state], count)
        latest = registry.latest(name)
        if latest is None:
            continue
        newer = [x for x in versions if x.number > latest.number]
        waiting.add_metric([name], sum(not x.becomes_latest for x in newer))
        if (found := latest.verdict) is not None:
            judged.add_metric([name, found], 1)
    yield from (family, judged, waiting)
