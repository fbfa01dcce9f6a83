"""Metrics of the model process: predictions and loaded versions."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from service.model_process.answer import VersionName
from service.model_process.registry import ModelRegistry

# In units of the target; two bounds per power of ten.
_DEVIATIONS = np.array([float(f"{m}e{e}") for e in range(-6, 7) for m in (1, 3)])
_SHARES = np.round(np.linspace(0.1, 1.0, 10), 1)
_FAMILIARITIES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
_ENTROPIES = np.array([0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0])

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
        "Percentile of each row among rows like the training rows; of such rows, 5 % "
        "have .05 or less.",
        _FAMILIARITIES,
    ),
}


@dataclass
class _Counts:
    counts: np.ndarray
    total: float = 0.0


class UncertaintyMetrics(Collector):
    """Histograms of the predictive uncertainty of each version, and of its rows.

    Uncertainty grows when rows differ from the training rows, and familiarity tells
    that they do.
    """

    def __init__(self, registry: ModelRegistry) -> None:
        self._registry = registry
        self._seen: dict[tuple[str, VersionName], _Counts] = {}
        self._changing = threading.Lock()

    def observe(self, version: VersionName, outputs: Mapping[str, np.ndarray]) -> None:
        """Counts the rows of one response, if it contains their uncertainty."""
        if "variance" in outputs:
            variance = outputs["variance"]
            self._count("tfbbb_predictive_standard_deviation", version, variance**0.5)
            self._count_share(version, outputs["epistemic"], variance)
        elif "entropy" in outputs:
            entropy = outputs["entropy"]
            self._count("tfbbb_predictive_entropy", version, entropy)
            self._count_share(version, outputs["mutual_information"], entropy)
        if "familiarity" in outputs:
            self._count("tfbbb_familiarity", version, outputs["familiarity"])

    def collect(self) -> Iterable[Metric]:
        """Returns the histograms."""
        known = {
            VersionName(version.name, version.number)
            for versions in self._registry.catalog().values()
            for version in versions
        }
        with self._changing:
            self._seen = {k: seen for k, seen in self._seen.items() if k[1] in known}
            for name, (description, bounds) in _FIGURES.items():
                family = HistogramMetricFamily(
                    name, description, labels=["model", "version"]
                )
                labels = [*map(str, bounds.tolist()), "+Inf"]
                for (figure, version), seen in self._seen.items():
                    if figure == name:
                        below = np.cumsum(seen.counts).tolist()
                        buckets = list(zip(labels, below, strict=True))
                        of_version = [version.name, str(version.number)]
                        family.add_metric(of_version, buckets, seen.total)
                yield family

    def _count_share(
        self, version: VersionName, part: np.ndarray, whole: np.ndarray
    ) -> None:
        share = np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
        self._count("tfbbb_epistemic_share", version, share)

    def _count(self, figure: str, version: VersionName, values: np.ndarray) -> None:
        bounds = _FIGURES[figure][1]
        # A number of single precision at a bound is not above it.
        places = np.searchsorted(bounds.astype(values.dtype), values.ravel())
        counts = np.bincount(places, minlength=len(bounds) + 1)
        with self._changing:
            seen = self._seen.setdefault((figure, version), _Counts(counts * 0))
            seen.counts += counts
            seen.total += float(values.sum())


class LoadedMetrics(Collector):
    """Metrics of the models whose home is this process, and of their states."""

    def __init__(self, registry: ModelRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
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
        homed = set(self._registry.homed())
        for name, versions in self._registry.catalog().items():
            if name not in homed:
                continue
            for state, count in Counter(v.state for v in versions).items():
                family.add_metric([name, state], count)
            latest = self._registry.latest(name)
            if latest is None:
                continue
            newer = [x for x in versions if x.number > latest.number]
            waiting.add_metric([name], sum(not x.becomes_latest for x in newer))
            if (found := latest.verdict) is not None:
                judged.add_metric([name, found], 1)
        yield from (family, judged, waiting)
