"""Metrics of shadows: how many rows they predicted, and how far from the answers."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from prometheus_client.core import CounterMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from service.model_process.answer import VersionName

COMPUTED, DROPPED, FAILED = "computed", "dropped", "failed"

_LABELS = ("model", "version")


class ShadowMetrics(Collector):
    """Counts the predictions of shadows, and their distances from the answers."""

    def __init__(self) -> None:
        self._outcomes: Counter[tuple[VersionName, str]] = Counter()
        self._rows: Counter[VersionName] = Counter()
        self._distances: Counter[VersionName] = Counter()
        self._changing = threading.Lock()

    def count(self, shadow: VersionName, outcome: str) -> None:
        """Counts a request whose rows were computed, dropped, or failed."""
        with self._changing:
            self._outcomes[shadow, outcome] += 1

    def compare(
        self,
        shadow: VersionName,
        answered: Mapping[str, np.ndarray],
        predicted: Mapping[str, np.ndarray],
    ) -> None:
        """Adds the distances of a shadow's predictions from those answered."""
        found = _distances(answered, predicted)
        if found is not None and np.isfinite(found).all():
            with self._changing:
                self._rows[shadow] += len(found)
                self._distances[shadow] += found.sum()

    def collect(self) -> Iterable[Metric]:
        """Returns the counts."""
        counts = CounterMetricFamily(
            "tfbbb_shadow_predictions",
            "Requests whose rows a shadow computed, dropped under load, or failed at.",
            labels=[*_LABELS, "outcome"],
        )
        distances = SummaryMetricFamily(
            "tfbbb_shadow_distance",
            "Distance of the shadow's mean from that of the answer, per row: in "
            "predictive standard deviations of the answer; of classes, the total "
            "variation distance of the probabilities.",
            labels=_LABELS,
        )
        with self._changing:
            for (shadow, outcome), number in self._outcomes.items():
                counts.add_metric([shadow.name, str(shadow.number), outcome], number)
            for shadow, rows in self._rows.items():
                labels = [shadow.name, str(shadow.number)]
                distances.add_metric(labels, rows, float(self._distances[shadow]))
        yield from (counts, distances)


def _distances(
    answered: Mapping[str, np.ndarray], predicted: Mapping[str, np.ndarray]
) -> np.ndarray | None:
    """Returns the distance of each row, or None if the outputs differ in kind."""
    for name in ("mean", "probabilities"):
        if name in answered and name in predicted:
            difference = np.abs(
                predicted[name].astype(np.float64) - answered[name].astype(np.float64)
            )
            if name == "probabilities":
                return np.asarray(difference.sum(axis=1) / 2)
            return np.asarray(
                np.mean(difference / np.sqrt(answered["variance"]), axis=1)
            )
    return None
